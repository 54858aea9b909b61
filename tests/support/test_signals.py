"""Ctrl-C during steps that belong together."""

from __future__ import annotations

import signal

import pytest

from givens.support.signals import uninterrupted


def test_ctrl_c_is_raised_at_the_end_of_the_block():
    done = []

    def interrupted():
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            done.append("the rest of the block")

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert done == ["the rest of the block"]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_handler_that_python_does_not_know_is_left_alone(monkeypatch):
    def refuse(number, handler):
        raise AssertionError("the handler must not be replaced")

    monkeypatch.setattr(signal, "getsignal", lambda number: None)
    monkeypatch.setattr(signal, "signal", refuse)
    with uninterrupted():
        pass
