"""Fits on data in chunks, in one process or on a Dask cluster: the data stay where they are, and summaries of them are sent.

What an estimator needs of many samples is a sum over them: moments, Gram matrices, expected counts, sketches. A pass computes a
`Summary` of every chunk and merges the summaries in a tree whose shape depends on the number of chunks only. So the result has
the same bits whichever worker computes which chunk, in whatever order, and also if a worker dies: Dask then computes the lost
summary again, under the same key, and it is counted once.

Dask schedules, retries and spills. Data in memory, or read from disk batch by batch, are summed by the same summaries in a loop
(`RepeatedData.total`).
"""

from givens.cluster.lazily import applied
from givens.cluster.passes import RepeatedData
from givens.cluster.summary import EveryNth, Summary, Together

__all__ = ["EveryNth", "RepeatedData", "Summary", "Together", "applied"]
