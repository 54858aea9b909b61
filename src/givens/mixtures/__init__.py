"""Mixtures of spherical Gaussians: fits to moments (`whitened_moments`), densities, EM and its starts (`em`)."""
