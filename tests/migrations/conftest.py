"""Empty databases of every kind."""

import pytest

pytest.register_assert_rewrite("tests.migrations.places")

from tests.migrations.places import make_place, place  # noqa: E402 (see above)

__all__ = ["make_place", "place"]
