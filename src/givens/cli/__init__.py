"""The command `givens`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say what it needs."""
    try:
        from givens.cli.app import app
    except ImportError as error:
        if error.name not in ("typer", "rich", "click"):
            raise
        print(
            "error: the command line is not installed; install it with: pip install 'givens[cli]'",
            file=sys.stderr,
        )
        sys.exit(1)
    app()
