"""The contract, kept by the SQL store on PostgreSQL and on MariaDB."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, text

from batchmill.store import BatchRepository
from batchmill.testing.contract import StoreContract


def _emptied(engine: Engine) -> Iterator[BatchRepository]:
    """A repository on tables that hold nothing; afterwards no connection is checked out."""
    with engine.begin() as connection:
        for table in ("batch_target", "batch_turn", "batch_job", "batch_runner"):
            connection.execute(text(f"DELETE FROM {table}"))
        connection.execute(text("UPDATE batch_total SET nbytes = 0"))
    yield BatchRepository(engine)
    assert engine.pool.checkedout() == 0


class TestPostgreSQL(StoreContract):
    """PostgreSQL, from the wheel."""

    @pytest.fixture
    def store(self, postgresql: Engine) -> Iterator[BatchRepository]:
        """A repository on an empty database."""
        yield from _emptied(postgresql)


class TestMariaDB(StoreContract):
    """MariaDB, where it is installed."""

    @pytest.fixture
    def store(self, mariadb: Engine) -> Iterator[BatchRepository]:
        """A repository on an empty database."""
        yield from _emptied(mariadb)
