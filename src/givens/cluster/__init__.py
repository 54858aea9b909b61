"""Fits on data in chunks, wherever the chunks lie: summaries travel, data stay.

Whatever an estimator needs of many samples is a sum over them: moments, Gram matrices, expected counts, sketches. A pass makes
one `Summary` of every chunk and merges the summaries by a tree whose shape depends on the number of chunks only. So the answer
has the same bits whichever worker took which chunk, in whatever order they finished, and also if one of them died: Dask then
computes the lost summary again, under the same key, and it is counted once.

Dask schedules, retries and spills. Data in memory, or read from disk one batch after the other, go through the same summaries in
one loop (`RepeatedData.total`).
"""

from givens.cluster.lazily import applied
from givens.cluster.passes import RepeatedData
from givens.cluster.summary import Summary, Together

__all__ = ["RepeatedData", "Summary", "Together", "applied"]
