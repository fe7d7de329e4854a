"""What these tests run on."""

from tests.support.fixtures import database, make_database, migrated_sqlite, store

__all__ = ["database", "make_database", "migrated_sqlite", "store"]
