"""The compiled code: entries (`@kernel`) and the helpers that they share (`@inline`); see `compile`."""
