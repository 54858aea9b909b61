"""Samples, and sums over them: one way from a table, a file, a stream or a cluster to the numbers that an estimator needs.

`rows` reads samples, checks them and passes over them, `passes` says what a pass adds up and how chunks on Dask become one sum,
`moments` and `third_moments` are such sums, `stream` keeps them for batches that come one after the other, and `by_rows` calls a
fitted estimator on samples of all these kinds.
"""
