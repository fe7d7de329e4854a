"""The contract over the SQL store on SQLite, in a file and in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Engine

from batchmill.store import BatchRepository, create_store_engine, migrate
from batchmill.testing import StoreContract


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated database file, copied for each test: migrating takes longer than most tests."""
    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    engine = create_store_engine(f"sqlite:///{path}")
    migrate.upgrade(engine)
    engine.dispose()
    return path


def watched(url: str) -> Iterator[Engine]:
    """An engine; at the end nobody may still have a connection of it."""
    # Not every commit has to reach the disk here: what survives a power cut is tested elsewhere.
    engine = create_store_engine(url, durability="normal")
    yield engine
    checked_out = engine.pool.checkedout()  # type: ignore[attr-defined]
    engine.dispose()
    assert checked_out == 0


class TestFile(StoreContract):
    @pytest.fixture
    def engine(self, tmp_path: Path, template: Path) -> Iterator[Engine]:
        path = tmp_path / "batch.db"
        path.write_bytes(template.read_bytes())
        yield from watched(f"sqlite:///{path}")

    @pytest.fixture
    def store(self, engine: Engine) -> BatchRepository:
        return BatchRepository(engine)


class TestInMemory(StoreContract):
    @pytest.fixture
    def engine(self, template: Path) -> Iterator[Engine]:
        for engine in watched("sqlite://"):
            copy = engine.raw_connection()
            with closing(sqlite3.connect(template)) as source:
                source.backup(copy.driver_connection)  # type: ignore[arg-type]
            copy.close()
            yield engine

    @pytest.fixture
    def store(self, engine: Engine) -> BatchRepository:
        return BatchRepository(engine)
