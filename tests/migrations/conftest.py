"""Empty databases of every kind."""

from tests.migrations.places import make_place, place

__all__ = ["make_place", "place"]
