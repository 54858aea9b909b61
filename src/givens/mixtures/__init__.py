"""Mixtures of spherical Gaussians: fits to moments (`whitened_moments`, `refit`), EM (`em`), densities (`model`)."""
