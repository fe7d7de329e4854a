"""A migrated SQLite file, and a look at its rows that shares nothing with the store."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from batchmill.store import BatchRepository, create_store_engine, migrate


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the database file of this test is."""
    return tmp_path / "batchmill.db"


@pytest.fixture
def engine(path: Path) -> Iterator[Engine]:
    """An engine of ours on a migrated file."""
    engine = create_store_engine(f"sqlite:///{path}", durability="normal")
    migrate.upgrade(engine)
    yield engine
    assert engine.pool.checkedout() == 0
    engine.dispose()


@pytest.fixture
def store(engine: Engine) -> BatchRepository:
    """A repository on it."""
    return BatchRepository(engine)


@pytest.fixture
def raw(engine: Engine, path: Path) -> Callable[..., list[tuple[Any, ...]]]:
    """Run raw SQL on a connection of its own, with foreign keys off."""

    def query(sql: str, *params: Any) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(path, timeout=30)
        try:
            rows = connection.execute(sql, params).fetchall()
            connection.commit()
            return rows
        finally:
            connection.close()

    return query
