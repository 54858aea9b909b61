"""Compiled code on disk, in a small package of its own: stale, damaged, unwritable, and with other internals of numba."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core.caching import FunctionCache

from givens.kernels import compile
from givens.kernels.cache import FolderCache

HELPER = """
from givens.kernels.compile import inline

@inline
def grow(x):
    return x + 1.0
"""
ENTRY = """
from givens.kernels.compile import kernel
from givens.kernels.helper import grow

@kernel
def twice(x):
    return 2.0 * grow(x)
"""
ALONE = """
from givens.kernels.compile import kernel

@kernel
def halve(x):
    return 0.5 * x
"""
RUN = """
import json, warnings
{before}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from givens.kernels.alone import halve
    from givens.kernels.entry import twice
    values = [twice(3.0), halve(3.0)]
from givens.kernels.cache_warnings import is_kept
hits = [sum(f.stats.cache_hits.values()) for f in (twice, halve)]
print(json.dumps([values, hits, [str(warning.message) for warning in caught], is_kept()]))
"""
NO_CACHE_CLASS = "import sys; sys.modules['givens.kernels.cache'] = None"
OTHER_INTERNALS = (
    "import givens.kernels.cache as c; c.FolderCache.__init__ = lambda self, function: self.gone"
)
# Importing numba takes longer than everything else, so one process imports it, and each run is a copy of that process.
SERVER = """
import os, sys
import numba
for line in sys.stdin:
    folder, cache, code = eval(line)
    child = os.fork()
    if child == 0:
        sys.path.insert(0, folder)
        numba.config.CACHE_DIR = cache
        exec(code, {"__name__": "__main__"})
        sys.stdout.flush()
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit(1)
"""
FULL_DISK = """
import errno, os
def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
os.replace = full
"""


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "site" / "givens" / "kernels"
    folder.mkdir(parents=True)
    source = Path(compile.__file__).parent
    for name in ("compile.py", "cache.py", "cache_warnings.py"):
        shutil.copy(source / name, folder)
    support = folder.parent / "support"
    support.mkdir()
    shutil.copy(source.parent / "support" / "signals.py", support)
    for place in (folder.parent, folder, support):
        (place / "__init__.py").touch()
    for name, code in (("helper", HELPER), ("entry", ENTRY), ("alone", ALONE)):
        (folder / f"{name}.py").write_text(code)
    return folder


@pytest.fixture(scope="module")
def server():
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA_", "PYTHON"))}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    command = [sys.executable, "-B", "-c", SERVER]
    with subprocess.Popen(command, env={**clean, "OPENBLAS_NUM_THREADS": "1"}, **pipes) as process:
        yield process
        process.stdin.close()


@pytest.fixture
def run(package, server):
    """Load the package in a fresh process, and call its two functions."""

    def load(before=""):
        cache = package.parents[2] / "cache"
        request = str(package.parents[1]), str(cache), RUN.format(before=before)
        print(repr(request), file=server.stdin)
        line = server.stdout.readline()
        assert line, "the process has ended"
        return json.loads(line)

    return load


def kept(package):
    """The files of compiled code, by name."""
    return {
        path.name: path
        for path in (package.parents[2] / "cache").rglob("*")
        if path.suffix in (".nbi", ".nbc")
    }


def test_a_helper_of_another_file_that_has_changed_is_compiled_anew(run, package):
    assert run() == [[8.0, 1.5], [0, 0], [], True]
    assert run() == [[8.0, 1.5], [1, 1], [], True]
    (package / "helper.py").write_text(HELPER.replace("1.0", "4.0"))
    assert run() == [[14.0, 1.5], [0, 0], [], True]
    assert run() == [[14.0, 1.5], [1, 1], [], True]


def checked(content: bytes) -> bytes:
    return content + hashlib.sha256(content).digest()


DAMAGES = {
    "empty": lambda content: b"",
    "one bit": lambda content: content[:200] + bytes([content[200] ^ 1]) + content[201:],
    "no pickle": lambda content: checked(b"not a pickle"),
}


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_damaged_files_are_compiled_anew_with_one_warning_and_replaced(run, package, suffix):
    run()
    for damage, damaged in DAMAGES.items():
        files = {path for name, path in kept(package).items() if path.suffix == suffix}
        assert len(files) == 2
        for path in files:
            path.write_bytes(damaged(path.read_bytes()))
        values, hits, warned, keeps = run()
        assert (values, hits, keeps) == ([8.0, 1.5], [0, 0], True), damage
        assert len(warned) == 1, damage
        assert "delete that folder" in warned[0]
        assert str(next(iter(files)).parent) in warned[0]
        assert run() == [[8.0, 1.5], [1, 1], [], True], damage


def test_a_full_disk_is_told_once_and_leaves_nothing_behind(run, package):
    values, hits, warned, keeps = run(FULL_DISK)
    assert (values, hits, keeps) == ([8.0, 1.5], [0, 0], False)
    assert len(warned) == 1
    assert "No space left on device" in warned[0]
    assert "NUMBA_CACHE_DIR" in warned[0]
    assert not [path for path in (package.parents[2] / "cache").rglob("*") if path.is_file()]
    assert run() == [[8.0, 1.5], [0, 0], [], True]


def test_data_of_another_function_or_version_are_no_hit(run, package):
    """The index is written before the data, so it may name a file that is not its own."""
    run()
    files = {name: path for name, path in kept(package).items() if path.suffix == ".nbc"}
    one, other = files.values()
    one.write_bytes(other.read_bytes())
    values, hits, warned, _ = run()
    assert (values, warned) == ([8.0, 1.5], [])
    assert sorted(hits) == [0, 1]


@pytest.mark.parametrize("before", [NO_CACHE_CLASS, OTHER_INTERNALS], ids=["import", "use"])
def test_with_other_internals_only_files_that_import_no_compiled_code_are_cached(run, package, before):
    assert run(before) == [[8.0, 1.5], [0, 0], [], True]
    assert run(before) == [[8.0, 1.5], [0, 1], [], True]


def test_an_interrupt_waits_until_compiled_code_is_linked(monkeypatch):
    linked = []

    def load(self, sig, target_context):
        signal.raise_signal(signal.SIGINT)
        linked.append(sig)

    monkeypatch.setattr(FunctionCache, "load_overload", load)
    cache = FolderCache.__new__(FolderCache)
    with pytest.raises(KeyboardInterrupt):
        cache.load_overload("types", None)
    assert linked == ["types"]
