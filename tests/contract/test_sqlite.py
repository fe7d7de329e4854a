"""The contract over the SQL store on SQLite, in a file and in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from batchmill.store import BatchRepository, create_store_engine, migrate
from batchmill.testing import StoreContract


def migrated(url: str) -> Iterator[Engine]:
    """An engine with batchmill's tables; at the end nobody may still have a connection of it."""
    # Not every commit has to reach the disk here: what survives a power cut is tested elsewhere.
    engine = create_store_engine(url, durability="normal")
    migrate.upgrade(engine)
    yield engine
    checked_out = engine.pool.checkedout()  # type: ignore[attr-defined]
    engine.dispose()
    assert checked_out == 0


@pytest.fixture(scope="module")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A migrated database file: copied for each test, it need not be migrated each time."""
    path = tmp_path_factory.mktemp("sqlite") / "empty.db"
    for _ in migrated(f"sqlite:///{path}"):
        pass
    return path.read_bytes()


class TestFile(StoreContract):
    @pytest.fixture
    def engine(self, tmp_path: Path, empty_file: bytes) -> Iterator[Engine]:
        path = tmp_path / "batch.db"
        path.write_bytes(empty_file)
        engine = create_store_engine(f"sqlite:///{path}", durability="normal")
        yield engine
        checked_out = engine.pool.checkedout()  # type: ignore[attr-defined]
        engine.dispose()
        assert checked_out == 0

    @pytest.fixture
    def store(self, engine: Engine) -> BatchRepository:
        return BatchRepository(engine)


class TestInMemory(StoreContract):
    @pytest.fixture
    def engine(self) -> Iterator[Engine]:
        yield from migrated("sqlite://")

    @pytest.fixture
    def store(self, engine: Engine) -> BatchRepository:
        return BatchRepository(engine)
