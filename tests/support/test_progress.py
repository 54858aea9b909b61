"""Progress bars."""

from __future__ import annotations

import pytest

from givens.support.progress import counter

rich = pytest.importorskip("rich")


def test_a_bar_is_shown_also_after_an_interrupt_inside_the_last_one(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    shared = rich.get_console()
    shared._enter_buffer()  # an interrupt in the middle of printing leaves the shared console like that
    try:
        with counter("pass 1", "chunks", 3) as advance:
            advance(3)
        assert "3 of 3 chunks" in capsys.readouterr().out
    finally:
        shared._exit_buffer()
