"""Independent components by contrasts, fourth-order cumulants or lagged covariances, and joint diagonalisation."""
