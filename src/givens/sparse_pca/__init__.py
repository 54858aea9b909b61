"""Sparse principal components: the estimator, its two forms (a threshold, or counts of non-zeros), and its path."""
