"""Every command of the README and the documentation runs, the set-up commands apart.

The commands of a page run in one folder, in the order a reader meets them, with the `givens` of this checkout: in this process,
unless a shell is needed. Set-up commands (making an environment, running make) are not run: that they name targets and extras
that exist is all that is asked of them.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.net.test_outputs import run as run_in_process

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(
    r"^(?P<indent> *)```(?:sh|bash|shell|console)[^\n]*\n(?P<code>.*?)^(?P=indent)```", re.M | re.S
)
SET_UP = ("make", "pip", "python -m venv", "source", "git", "cd", "sudo", "apt-get")


def commands(text: str) -> list[str]:
    """Return the commands of a page: lines, joined where they end in a backslash, without prompts and comments."""
    lines = []
    for match in FENCE.finditer(text):
        indent = len(match["indent"])
        block = "\n".join(line[indent:] for line in match["code"].splitlines())
        for line in block.replace("\\\n", " ").splitlines():
            line = line.removeprefix("$ ")
            words = shlex.split(line, comments=True)
            if words:
                lines.append(line)
    return lines


def is_set_up(command: str) -> bool:
    return any(command == start or command.startswith(start + " ") for start in SET_UP)


def run(command: str, folder: Path) -> None:
    """Run a command in a folder."""
    words = shlex.split(command)
    if words[0] == "givens" and not {">", "<", "|"} & set(words):
        with contextlib.chdir(folder):
            code, out, err = run_in_process(words[1:])
    else:
        code, out, err = run_in_shell(command, folder)
    assert code == 0, f"{command}\n{out}\n{err}"


def run_in_shell(command: str, folder: Path) -> tuple[int, str, str]:
    """Run a command by a shell whose `givens` and `python` are those of this checkout."""
    shims = folder / ".bin"
    shims.mkdir(exist_ok=True)
    for name, rest in (("givens", "-m givens "), ("python", ""), ("python3", "")):
        (shims / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {rest}"$@"\n')
        (shims / name).chmod(0o755)
    source = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PATH": f"{shims}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": source}
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True
    )
    return done.returncode, done.stdout, done.stderr


def to_run() -> list[Path]:
    """The pages with commands, but for those with which a longer page begins."""
    words = {
        page: [
            shlex.split(line, comments=True)
            for line in commands(page.read_text(encoding="utf-8"))
            if not is_set_up(line)
        ]
        for page in PAGES
    }
    beginnings = [every[:k] for every in words.values() for k in range(len(every))]
    return [page for page, every in words.items() if every not in [[], *beginnings]]


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", to_run(), ids=relative)
def test_commands_run(path, tmp_path):
    for command in commands(path.read_text(encoding="utf-8")):
        if not is_set_up(command):
            run(command, tmp_path)


def test_set_up_commands_name_what_exists():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for page in PAGES:
        for command in commands(page.read_text(encoding="utf-8")):
            words = shlex.split(command, comments=True)
            if words[0] == "make":
                wanted = [word for word in words[1:] if "=" not in word]
                assert set(wanted) <= targets, f"{relative(page)}: {command}"
            for named in re.findall(r"\[([\w,]+)\]", command) if words[0] == "pip" else []:
                assert set(named.split(",")) <= set(extras), f"{relative(page)}: {command}"
