"""How many examples a property gets: few and always the same in `make test`, 500 new ones in `make test-portable`."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

PORTABLE = os.environ.get("HYPOTHESIS_PROFILE") == "portable"
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]


def examples(number: int) -> settings:
    """The settings of a property that needs another number of examples than the profile's."""
    return settings(max_examples=500 if PORTABLE else number)


def load_profile() -> None:
    """No deadline, since the first example may compile code; the same examples in every ordinary run."""
    settings.register_profile(
        "givens", deadline=None, derandomize=True, max_examples=25, suppress_health_check=SLOW
    )
    settings.register_profile(
        "portable",
        deadline=None,
        max_examples=500,
        suppress_health_check=SLOW,
        print_blob=True,
        database=None,
    )
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "givens"))
