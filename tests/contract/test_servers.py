"""The contract, kept by the SQL store on PostgreSQL and on MariaDB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, text

from batchmill.store import BatchRepository, metadata
from batchmill.store.statements.common import JOB, RUNNER, TARGET, TOTAL, TURN
from batchmill.testing.contract import StoreContract, eviction, outcomes, rotation, submitting


def _emptied(engine: Engine, schema: str | None = None) -> Iterator[BatchRepository]:
    """A repository on tables that hold nothing; afterwards no connection is checked out."""
    with engine.begin() as moved:
        connection = moved.execution_options(schema_translate_map={None: schema})
        for table in (TARGET, TURN, JOB, RUNNER):
            connection.execute(table.delete())
        connection.execute(TOTAL.update().values(nbytes=0))
    yield BatchRepository(engine, schema=schema)
    assert engine.pool.checkedout() == 0


def _everything(engine: Engine) -> list[list[Any]]:
    """All rows of the default schema, and where its sequence stands."""
    sequence = text("SELECT last_value FROM batch_turn_number")
    with engine.connect() as connection:
        rows = [connection.execute(table.select()).all() for table in metadata.sorted_tables]
        return [sorted(map(tuple, found)) for found in rows] + [
            [connection.execute(sequence).scalar()]
        ]


class TestPostgreSQL(StoreContract):
    """PostgreSQL, from the wheel."""

    @pytest.fixture
    def store(self, postgresql: Engine) -> Iterator[BatchRepository]:
        """A repository on an empty database."""
        yield from _emptied(postgresql)


@pytest.fixture(scope="class")
def nothing_beside(postgresql: Engine) -> Iterator[None]:
    """No test of a class may touch the tables in the default schema, nor their sequence."""
    before = _everything(postgresql)
    yield
    assert _everything(postgresql) == before


@pytest.mark.usefixtures("nothing_beside")
class InSchema:
    """Tables in a schema of PostgreSQL's, beside others in the default one."""

    @pytest.fixture
    def store(self, postgresql: Engine, schema: str) -> Iterator[BatchRepository]:
        """A repository on an empty schema."""
        yield from _emptied(postgresql, schema)


@pytest.mark.soak
class TestSchema(InSchema, StoreContract):
    """The whole contract in a schema."""


class TestSchemaInShort(
    InSchema, eviction.Eviction, outcomes.Storing, rotation.Rotation, submitting.Caps
):
    """Parts of the contract that between them use every table, the sequence and the locks."""


class TestMariaDB(StoreContract):
    """MariaDB, where it is installed."""

    @pytest.fixture
    def store(self, mariadb: Engine) -> Iterator[BatchRepository]:
        """A repository on an empty database."""
        yield from _emptied(mariadb)
