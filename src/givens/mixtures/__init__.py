"""Mixtures of spherical Gaussians: fits to moments (`solve`, `refit`), EM (`em`, `starts`), densities (`model`)."""
