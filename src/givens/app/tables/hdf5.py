"""Read the attributes and strings of an HDF5 file in a child process before it is opened here.

The HDF5 library can loop endlessly, or read beyond its memory, where the heap that holds a damaged file's strings is broken, and
neither a signal nor a thread of Python can end that. It also allocates as much memory as a file claims that a string or a data
set has. A child process can be ended, and has a limit on its memory: it reads every attribute and every string, and of the
numbers only how many there should be, so that its time does not grow with the numbers in the file.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from givens.app.tables.table import DataError

# Seconds, and one more for each BYTES_PER_SECOND of the file: a slow disk is not a damaged file.
PATIENCE_SECONDS = 30.0

# What HDF5 cannot read, or allocate, ends the child with exit code 3 and its reason. Other exceptions of h5py, such as those of
# types that Python does not have, are raised again if that part of the file is used.
WALK = """
import os
import sys
import h5py

size = os.path.getsize(sys.argv[1])
try:
    import resource
    with open("/proc/self/statm") as stream:
        used = int(stream.read().split()[0]) * resource.getpagesize()
    # A string takes more than 24 bytes of the file, and fewer than 200 besides its letters here.
    limit = used + 16 * size + 2**28
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
except (ImportError, OSError, ValueError):
    pass  # a system other than Linux

def look(name, item):
    try:
        for key in item.attrs:
            item.attrs[key]
        if isinstance(item, h5py.Dataset):
            if item.dtype.hasobject:  # strings of their own length each
                item[()]
            elif item.nbytes > 5000 * size:  # zlib makes data at most 1032 times smaller
                raise OSError(f"{name} cannot have {item.nbytes:,} bytes in a file of {size:,}")
    except (MemoryError, OSError) as error:
        print(error)
        sys.exit(3)
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
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            yield
            reason, _ = process.communicate(timeout=PATIENCE_SECONDS + path.stat().st_size / 20e6)
        except subprocess.TimeoutExpired:
            raise DataError(
                f"{path.name} is a damaged .h5ad file (HDF5 does not come to an end reading it)"
            ) from None
        finally:
            process.kill()
    if process.returncode == 3:
        raise DataError(f"{path.name} is a damaged .h5ad file ({' '.join(reason.split())[:200]})")
    if process.returncode < 0:
        raise DataError(f"{path.name} is a damaged .h5ad file (HDF5 crashes reading it)")
