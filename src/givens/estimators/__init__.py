"""Estimators with scikit-learn's contract, thin over the loop."""
