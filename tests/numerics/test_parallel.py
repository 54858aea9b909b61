"""Pools of threads: order, errors, and a BLAS that keeps to one thread within them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from givens import minimize
from givens.numerics import flop_counts, parallel
from givens.objectives import Function, SparseColumns
from tests.interrupt import SignalAt


@pytest.fixture(autouse=True)
def a_blas_with_two_threads():
    with threadpool_limits(2, user_api="blas"):
        yield


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


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_flops_are_those_of_all_threads(threads):
    with parallel.pool(threads), flop_counts.job(flop_counts.Flops()) as counter:
        flop_counts.count(1.0)
        parallel.each(lambda k: flop_counts.count(k / 3), range(50))
        with flop_counts.uncounted():
            flop_counts.count(1.0)
    assert counter.flops == 1.0 + sum(round(k / 3) for k in range(50))


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
    assert before == {2}
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


class Watching:
    """A start that notes how many threads a BLAS has when it is read, which is before anything is turned."""

    def __array__(self, dtype=None, copy=None):
        self.seen = blas_threads()
        return np.eye(4)


def test_minimize_checks_its_arguments_within_its_pool():
    start = Watching()
    minimize(SparseColumns(np.random.default_rng(0).standard_normal((30, 4)), 0.5), start, max_iter=1)
    assert start.seen == {1}


CONCURRENT = """
import threading
import numpy as np
import scipy.linalg
from threadpoolctl import ThreadpoolController
from givens.numerics import flop_counts, parallel

libraries = [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]
seen = lambda: {library.get_num_threads() for library in libraries}
before, turns = seen(), [threading.Event() for _ in range(3)]

def first():
    with parallel.pool(2):
        turns[0].set()
        assert turns[1].wait(20)
    turns[2].set()

thread = threading.Thread(target=first)
thread.start()
assert turns[0].wait(20)
with parallel.pool(1):
    turns[1].set()
    assert turns[2].wait(20)
    within = seen()
thread.join()
print(within == {1}, seen() == before)
"""


def test_concurrent_pools_give_a_blas_back_what_it_had_before_the_first():
    """One opens, the other opens, one closes, the other closes: in a process whose BLAS has no other limits."""
    two = {**os.environ, "OPENBLAS_NUM_THREADS": "2", "MKL_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", CONCURRENT], env=two, capture_output=True, text=True)
    assert done.stdout == "True True\n", done.stdout + done.stderr


FORK = """
import os, signal
import numpy as np
from givens import minimize
from givens.objectives import Function, SparseColumns

A = np.random.default_rng(0).standard_normal((300, 12))
fit = lambda: minimize(SparseColumns(A, 1.0), max_iter=2, random_state=0, threads=2).value
expected = fit()

def fork(snapshot):
    if os.fork() == 0:
        signal.alarm(60)  # ends a child that waits for ever
        os._exit(0 if fit() == expected else 1)
    raise SystemExit(os.waitstatus_to_exitcode(os.wait()[1]))

minimize(SparseColumns(A, 1.0), max_iter=2, threads=2, callback=fork)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_process_forked_in_a_callback_fits_with_threads_of_its_own():
    assert subprocess.run([sys.executable, "-c", FORK]).returncode == 0


INTERRUPTED = """
import signal, sys, time
import numpy as np
from givens import minimize
from givens.objectives import JointDiagonal

rng = np.random.default_rng(0)
S = rng.standard_normal((20, 30, 30))
objective = JointDiagonal(S + S.transpose(0, 2, 1))
run = lambda: minimize(objective, random_state=0, tol=0, max_iter=8, threads=2)
run()
began = time.perf_counter()
run()
seconds = time.perf_counter() - began
signal.signal(signal.SIGALRM, signal.default_int_handler)
times = int(sys.argv[1])
for k in range(times):
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds * (k + 0.5) / times)
        while True:
            run()
    except BaseException as error:
        print(type(error).__name__)
"""


@pytest.mark.skipif(os.name == "nt", reason="there are no timers with signals")
def test_ctrl_c_is_a_keyboard_interrupt_wherever_it_arrives():
    """At moments spread over a run, most of which is spent in compiled code that returns arrays."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, "40"], capture_output=True, text=True)
    assert done.stdout.split() == ["KeyboardInterrupt"] * 40, done.stdout + done.stderr


def test_other_system_errors_stay_what_they_are():
    with pytest.raises(SystemError, match="other"), parallel.pool(1):
        raise SystemError("other")


def test_an_interrupt_while_threads_start_leaves_none_waiting(monkeypatch):
    workers, start, seen = parallel.Workers(3), threading.Thread.start, []

    def interrupted(thread):
        start(thread)
        seen.append(thread)
        if len(seen) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        workers.submit(lambda: None, 3)
    workers.close()
    for thread in seen:
        thread.join()
    assert len(seen) == 2


@pytest.mark.parametrize("links", [1, 2, 4])
def test_an_interrupt_behind_several_system_errors_is_an_interrupt(links):
    """Compiled code that returns several arrays adds a SystemError for each."""
    error = KeyboardInterrupt()
    for _ in range(links):
        error, cause = SystemError("returned a result with an exception set"), error
        error.__cause__ = cause
    with pytest.raises(KeyboardInterrupt), parallel.interrupts():
        raise error
    with pytest.raises(SystemError), parallel.interrupts():
        raise SystemError from ValueError()


def open_and_close():
    with parallel.pool(2):
        parallel.each(abs, range(4))
        with parallel.pool(1):
            pass


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGINT")
def test_an_interrupt_while_a_pool_opens_or_closes_leaves_none_open():
    before, handler = blas_threads(), signal.getsignal(signal.SIGINT)
    open_and_close()
    with SignalAt() as every:
        open_and_close()
    assert every.count > 50
    interrupted = 0
    for moment in range(1, every.count + 1):
        try:
            with SignalAt(moment):
                open_and_close()
        except KeyboardInterrupt:
            interrupted += 1
        assert (parallel._open.get(), parallel._current.get()) == (False, None), moment
        assert parallel._limited_blas.pools == 0, moment
        assert signal.getsignal(signal.SIGINT) is handler, moment
        for thread in threading.enumerate():
            if thread.name.startswith("givens-"):
                thread.join(20)
                assert not thread.is_alive(), moment
    # How many calls it takes to wait for a thread depends on the thread.
    assert interrupted > every.count / 2
    assert blas_threads() == before


def test_a_function_is_evaluated_with_one_thread_of_blas_also_before_the_run():
    """Idle threads would spin, and slow down the run that follows."""
    seen = []

    def f(U):
        seen.append(blas_threads())
        return float(U[0, 0])

    before = blas_threads()
    minimize(Function(f, 3, degree=1), random_state=0)
    assert len(seen) > 4
    assert all(threads == {1} for threads in seen)
    assert blas_threads() == before
