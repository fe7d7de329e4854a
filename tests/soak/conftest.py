"""What these tests run on, and the tables that they print."""

from tests.support.fixtures import database, make_database, migrated_sqlite, store
from tests.support.tables import tables

__all__ = ["database", "make_database", "migrated_sqlite", "store", "tables"]
