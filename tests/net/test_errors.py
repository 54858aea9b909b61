"""The deliberate errors stand in the source as it is: `python -m tests.net.errors` tells whether the golden nets notice them."""

import pytest

from tests.net.errors import ERRORS, TREE


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.what)
def test_the_place_of_an_error_is_still_there(error):
    content = (TREE / error.file).read_text(encoding="utf-8")
    assert error.applied(content) != content
