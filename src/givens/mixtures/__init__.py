"""Mixtures of spherical Gaussians: from moments (`solve`, `refit`), by likelihood (`em`), and their density (`model`)."""
