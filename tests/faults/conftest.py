"""What these tests run on."""

import pytest

from tests.support.fixtures import database, make_database, migrated_sqlite, store

__all__ = ["database", "make_database", "migrated_sqlite", "store"]


@pytest.fixture
def watched() -> bool:
    """Whether the application listens to the engine; a test may have it both ways."""
    return False
