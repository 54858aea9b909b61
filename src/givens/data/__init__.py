"""Samples, and sums over them: one way from a table, a file, a stream or a cluster to the numbers that an estimator needs.

`rows` checks samples and passes over them, `sources` reads them in batches, `dask` lets chunks stay where they are, `summary`
says what a pass adds up, and `by_rows` calls a fitted estimator on samples of all these kinds.
"""
