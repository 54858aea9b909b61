"""Pools of threads: order, errors, and a BLAS that keeps to one thread within them."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from givens import minimize
from givens.numerics import parallel
from givens.objectives import SparseColumns


def blas_threads():
    np.zeros((2, 2)) @ np.zeros((2, 2))
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_outcomes_come_in_the_order_of_the_items(threads):
    with parallel.pool(threads):
        assert parallel.width() == threads
        assert parallel.each(lambda k: k * k, range(50)) == [k * k for k in range(50)]
        assert parallel.each(lambda k: k, []) == []
    assert parallel.width() == 1


def test_more_than_one_thread_works():
    meeting = threading.Barrier(2, timeout=20)
    with parallel.pool(2):
        # Each of the two waits for the other: one thread alone would wait for ever.
        parallel.each(lambda _: meeting.wait(), range(2))


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_comes_out_when_every_thread_is_at_rest(threads):
    running = []

    def work(k):
        running.append(k)
        try:
            if k == 1:
                raise ZeroDivisionError("piece 1")
        finally:
            running.remove(k)

    with parallel.pool(threads):
        with pytest.raises(ZeroDivisionError, match="piece 1"):
            parallel.each(work, range(4))
        assert running == []
        assert parallel.each(lambda k: k, [1, 2]) == [1, 2]


def test_within_a_pool_a_blas_has_one_thread_and_gets_back_what_it_had():
    before = blas_threads()
    with parallel.pool(2):
        assert blas_threads() == {1}
        with parallel.pool(1):
            assert parallel.width() == 1
            assert blas_threads() == {1}
        assert parallel.width() == 2
        with parallel.pool(2):
            assert parallel.width() == 2
        assert parallel.width() == 2
        assert blas_threads() == {1}
    assert blas_threads() == before


class Watching(SparseColumns):
    """Notes how many threads a BLAS has when it is asked for its schedule, which is before anything is turned."""

    def schedule(self):
        self.seen = blas_threads()
        return super().schedule()


def test_minimize_checks_its_arguments_within_its_pool():
    objective = Watching(np.random.default_rng(0).standard_normal((30, 4)), 0.5)
    minimize(objective, np.eye(4), max_sweeps=1)
    assert objective.seen == {1}
