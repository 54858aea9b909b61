"""Compiled code: functions that Python calls (`@kernel`), and helpers that they share (`@inline`); see `compile`."""
