"""The stores that a property is tried on, a fresh one for each example."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from batchmill.testing import MemoryStore
from tests.model.rows import Bench
from tests.support.database import Database

NewStore = Callable[[], Any]


@pytest.fixture(params=["memory", "sql"])
def new_store(request: pytest.FixtureRequest, database: Database) -> NewStore:
    """Makes an empty store: one in memory, and one on the database."""
    return MemoryStore if request.param == "memory" else Bench(database).empty_store


@pytest.fixture
def new_server_store(database: Database) -> NewStore:
    """Makes an empty store on the database, whatever its kind."""
    return Bench(database).empty_store
