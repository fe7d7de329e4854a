"""What the tests of this folder run on: a server of each kind, its tables emptied for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, text

from batchmill.store import BatchRepository, create_store_engine
from tests.contract.conftest import mariadb, postgresql

__all__ = ["mariadb", "postgresql"]

MakeEngine = Callable[..., Engine]


@pytest.fixture(params=["postgresql", pytest.param("mariadb", marks=pytest.mark.mariadb)])
def server(request: pytest.FixtureRequest) -> Engine:
    """An engine on an empty, migrated database of each server."""
    return emptied(request.getfixturevalue(request.param))


@pytest.fixture
def postgres(postgresql: Engine) -> Engine:
    """An engine on an empty, migrated database of PostgreSQL."""
    return emptied(postgresql)


@pytest.fixture
def maria(mariadb: Engine) -> Engine:
    """An engine on an empty, migrated database of MariaDB."""
    return emptied(mariadb)


@pytest.fixture
def store(server: Engine) -> BatchRepository:
    """A repository on it."""
    return BatchRepository(server)


@pytest.fixture
def engines() -> Iterator[MakeEngine]:
    """Makes engines of ours on the database of another; at the end nobody has a connection."""
    made: list[Engine] = []

    def make(like: Engine, **given: Any) -> Engine:
        made.append(create_store_engine(like.url, **given))
        return made[-1]

    yield make
    checked_out = [engine.pool.checkedout() for engine in made]  # type: ignore[attr-defined]
    for engine in made:
        engine.dispose()
    assert checked_out == [0] * len(made)


def emptied(engine: Engine) -> Engine:
    """The engine, on tables that hold nothing."""
    with engine.begin() as connection:
        for table in ("batch_target", "batch_turn", "batch_job", "batch_runner"):
            connection.execute(text(f"DELETE FROM {table}"))
        connection.execute(text("UPDATE batch_total SET nbytes = 0"))
    return engine


@pytest.fixture
def raw(server: Engine) -> Callable[..., list[tuple[Any, ...]]]:
    """Run raw SQL in a transaction of its own; its rows."""

    def query(sql: str) -> list[tuple[Any, ...]]:
        with server.begin() as connection:
            found = connection.execute(text(sql))
            return [tuple(row) for row in found] if found.returns_rows else []

    return query
