"""Read the attributes and strings of an HDF5 file in a child process before it is opened here.

The HDF5 library can loop endlessly, or read beyond its memory, where the heap that holds a damaged file's strings is broken, and
neither a signal nor a thread of Python can end that. A child process can be ended: it reads every attribute and every
string, and nothing else, so that its time does not grow with the numbers in the file.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from givens.io.table import DataError

# Seconds, and one more for each BYTES_PER_SECOND of the file: a slow disk is not a damaged file.
PATIENCE_SECONDS = 30.0
BYTES_PER_SECOND = 20e6

# Exceptions of h5py are raised again when the file is read; here only loops and crashes matter.
WALK = """
import sys
import h5py

def look(name, item):
    try:
        for key in item.attrs:
            item.attrs[key]
        if isinstance(item, h5py.Dataset) and item.dtype.hasobject:  # strings of their own length each
            item[()]
    except Exception:
        pass

try:
    with h5py.File(sys.argv[1], "r") as file:
        look("/", file)
        file.visititems(look)
except Exception:
    pass
"""


@contextmanager
def walked(path: Path) -> Iterator[None]:
    """Refuse a file that HDF5 cannot walk through. What the body does, such as an import, costs no extra time."""
    if not sys.executable:  # Python inside another program: there is nothing to start
        yield
        return
    command = [sys.executable, "-P", "-c", WALK, str(path.absolute())]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield
        process.wait(PATIENCE_SECONDS + path.stat().st_size / BYTES_PER_SECOND)
    except subprocess.TimeoutExpired:
        raise DataError(
            f"{path.name} is a damaged .h5ad file (HDF5 does not come to an end reading it)"
        ) from None
    finally:
        process.kill()
        process.wait()
    if process.returncode < 0:
        raise DataError(f"{path.name} is a damaged .h5ad file (HDF5 crashes reading it)")
