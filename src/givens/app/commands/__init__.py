"""The command `givens`."""

from __future__ import annotations

import signal
import sys

from givens.app.commands.stopping import stop_at_once


def main() -> None:
    """Run the command line, or say what it needs."""
    # While modules are imported and after the work is done, Ctrl-C has nothing to clean up; `session.command` takes it over in
    # between. A shell's background jobs ignore it, and so do we.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, stop_at_once)
    try:
        from givens.app.commands.app import app
    except ImportError as error:
        if error.name not in ("typer", "rich", "click"):
            raise
        print(
            "error: the command line is not installed; install it with: pip install 'givens[cli]'",
            file=sys.stderr,
        )
        sys.exit(1)
    app()
