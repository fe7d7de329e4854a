"""Servers that these tests may kill, and the tables that they print."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hosts.servers import EACH, Server, running
from tests.hosts.support import forget
from tests.support.database import Database
from tests.support.tables import tables

__all__ = ["tables"]


@pytest.fixture(scope="package", params=EACH)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """One of each kind."""
    with running(request.param) as started:
        yield started


@pytest.fixture
def database(server: Server) -> Iterator[Database]:
    """A migrated database on it, whose finishes are logged."""
    server.revive()
    made = server.database()
    made.log_finishes()
    yield made
    server.revive()
    forget(made)
    made.close()
