"""A fit that takes effect all at once or not at all."""

from __future__ import annotations

import sys
import threading

import pytest
from sklearn.base import BaseEstimator, clone

from givens.support.fitting import atomic_fit


class Steps(BaseEstimator):
    """Assigns three attributes in turn, the middle one by a callable that may raise."""

    def __init__(self, extra=False):
        self.extra = extra

    @atomic_fit
    def fit(self, X, y=None, middle=lambda: None):
        """Fit."""
        self.__dict__.pop("extra_", None)
        self.first_ = X
        middle()
        self.last_ = X
        if self.extra:
            self.extra_ = X
        return self

    @atomic_fit
    def fit_predict(self, X, y=None):
        return [self.fit(X).last_]


def test_all_attributes_change_together():
    model = Steps(extra=True).fit(1)
    assert (model.first_, model.last_, model.extra_) == (1, 1, 1)
    assert model.set_params(extra=False).fit(2) is model
    assert vars(model) == {"extra": False, "first_": 2, "last_": 2}
    assert model.fit_predict(3) == [3]
    assert vars(model) == {"extra": False, "first_": 3, "last_": 3}
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, MemoryError])
def test_whatever_is_raised_leaves_the_model_as_it_was(error):
    def middle():
        raise error

    model = Steps(extra=True).fit(1)
    before = dict(vars(model))
    with pytest.raises(error):
        model.fit(2, middle=middle)
    assert vars(model) == before
    unfitted = Steps()
    with pytest.raises(error):
        unfitted.fit(2, middle=middle)
    assert vars(unfitted) == {"extra": False}


def test_another_thread_sees_the_old_model_until_the_fit_has_ended():
    model, begun, seen = Steps().fit(1), threading.Event(), threading.Event()

    def middle():
        begun.set()
        assert seen.wait(60)

    thread = threading.Thread(target=model.fit, args=(2,), kwargs={"middle": middle})
    thread.start()
    assert begun.wait(60)
    assert (model.first_, model.last_) == (1, 1)
    seen.set()
    thread.join()
    assert (model.first_, model.last_) == (2, 2)


def test_an_interrupt_at_any_line_leaves_the_old_model_or_the_new():
    outcomes = set()
    for moment in range(40):
        model, count = Steps(extra=True).fit(1), iter(range(moment, -1, -1))

        def trace(frame, event, argument, count=count):
            if event == "line" and next(count, 1) == 0:
                raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            model.fit(2)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        outcomes.add((model.first_, model.last_, model.extra_))
    assert outcomes == {(1, 1, 1), (2, 2, 2)}


def test_the_method_keeps_its_name_and_signature():
    assert Steps.fit.__name__ == "fit"
    assert Steps.fit.__doc__ == "Fit."
