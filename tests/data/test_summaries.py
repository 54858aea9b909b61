"""What summaries tell Dask about themselves, and the simulator that replays a pass over them."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from dask.sizeof import sizeof

from benchmarks._task_graph import Constants, pass_seconds
from givens.data.moments import Moments
from givens.data.passes import Together
from givens.data.sketch import Frequent, Sketch


def test_dask_knows_how_large_summaries_are():
    scatter = Moments(100).begin(0)
    assert 80_000 < sys.getsizeof(scatter) < 90_000
    sketch = Sketch(1000, Frequent(5, 10), np.float64).begin(0)
    assert sketch.Y.nbytes < sizeof(sketch) < 2 * sketch.Y.nbytes
    assert sizeof(Together(scatter, sketch)) > sizeof(scatter) + sketch.Y.nbytes


def test_one_worker_takes_all_tasks_one_after_the_other():
    cost = Constants(chunk=1.0, merge=0.25, scheduler=0.0, summary=1e9, bandwidth=1e6)
    # Every summary but one is merged into another, and nothing is sent.
    assert pass_seconds(9, 1, cost) == pytest.approx(9 + 8 * 0.25)


def test_many_workers_wait_for_a_chunk_the_tree_and_the_network():
    cost = Constants(chunk=1.0, merge=0.25, scheduler=0.0, summary=1e6, bandwidth=1e7)
    # Two levels of at most four summaries, of which three are sent, 0.1 s each.
    assert pass_seconds(16, 16, cost) == pytest.approx(1 + 2 * (3 * 0.25 + 3 * 0.1))


@pytest.mark.parametrize("chunks", [1, 5, 64, 1000])
def test_no_pass_beats_the_work_or_the_scheduler(chunks):
    cost = Constants(chunk=0.5, merge=0.01, scheduler=0.002, summary=1e6, bandwidth=1e9)
    for workers in (1, 2, 10, 100):
        seconds = pass_seconds(chunks, workers, cost)
        assert seconds >= max(chunks * cost.chunk / workers, chunks * cost.scheduler)
        assert seconds <= pass_seconds(chunks, 1, cost) + 3 * chunks * cost.summary / cost.bandwidth
