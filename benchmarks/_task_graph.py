"""A pass over chunks replayed: when each task of its graph would begin and end, for constants that were measured.

Tasks are a summary of every chunk and the tree that merges them, `FAN` at a time, as `givens.data.passes` makes it. A worker
takes one task after the other; a task starts when its inputs are there and a worker is free; inputs from other workers take their
bytes over the bandwidth. The scheduler hands out tasks one by one, a fixed time each. A pass takes a fixed time besides: for its
graph to be made and sent, and for the answer.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from givens.data.passes import FAN


@dataclass(frozen=True)
class Constants:
    """Seconds of a chunk, a merge, a task in the scheduler, and a pass; bytes of a summary, and per second of the network."""

    chunk: float
    merge: float
    scheduler: float
    summary: float
    bandwidth: float
    fixed: float = 0.0


def pass_seconds(chunks: int, workers: int, cost: Constants) -> float:
    """How long a pass takes."""
    free = [(0.0, number) for number in range(workers)]
    ready, handed = [], 0.0
    for _ in range(chunks):
        began, worker = heapq.heappop(free)
        handed += cost.scheduler
        end = max(began, handed) + cost.chunk
        ready.append((end, worker))
        heapq.heappush(free, (end, worker))
    while True:
        groups = [ready[k : k + FAN] for k in range(0, len(ready), FAN)]
        merged = []
        # A group is merged by the worker that had its first summary; the others' are sent to it.
        at = {worker: end for end, worker in free}
        for group in groups:
            home = group[0][1]
            sent = sum(worker != home for _, worker in group) * cost.summary / cost.bandwidth
            began = max(max(end for end, _ in group) + cost.scheduler, at[home])
            end = began + sent + (len(group) - 1) * cost.merge
            at[home] = end
            merged.append((end, home))
        free = [(end, worker) for worker, end in at.items()]
        heapq.heapify(free)
        ready = merged
        if len(ready) == 1:
            return cost.fixed + ready[0][0]
