"""What these tests run on, and the tables that they print."""

from typing import Any

from tests.support.fixtures import database, make_database, migrated_sqlite, store
from tests.support.tables import summarise, tables

__all__ = ["database", "make_database", "migrated_sqlite", "store", "tables"]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the tables."""
    summarise(terminalreporter)
