"""Temporary files, named after the process that writes them, so that those of killed processes can be removed."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import secrets
import zlib
from pathlib import Path

# A process number is valid on its own machine only.
HOST = f"{zlib.crc32(platform.node().encode()):08x}"
_NAME = re.compile(rf"\.(?P<name>.+)\.{HOST}-(?P<process>[0-9]+)-[0-9a-f]{{12}}\.part", re.DOTALL)


def part_of(target: Path) -> Path:
    """Return the name, beside the file, under which this process writes it."""
    return target.with_name(f".{target.name}.{HOST}-{os.getpid()}-{secrets.token_hex(6)}.part")


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Remove the unfinished files in a folder, or those of one name, whose writers on this machine have ended."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = _NAME.fullmatch(entry.name)
            if found and name in (None, found["name"]) and not _alive(int(found["process"])):
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)


def _alive(process: int) -> bool:
    """Whether a process of this number is running; where that cannot be asked, it is taken to be."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
