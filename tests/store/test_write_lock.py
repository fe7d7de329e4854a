"""How SQLite's write lock is waited for."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from batchmill.errors import StoreBusy
from batchmill.store import BatchRepository, create_store_engine, transactions
from batchmill.store import write_lock as module
from batchmill.store.transactions import OwnTransactions
from batchmill.store.write_lock import LAST_LOOK, REMEMBERED, WAITED, WriteLock
from tests.store.support import submit


def lock_of(store: BatchRepository) -> WriteLock:
    """What the store knows of the lock."""
    assert isinstance(store._transactions, OwnTransactions)
    return store._transactions._write_lock


@pytest.fixture
def writer(engine: Engine, path: Path) -> Iterator[sqlite3.Connection]:
    """Somebody else, who has the write lock."""
    del engine  # it has made the file
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    yield connection
    connection.close()


@pytest.fixture
def at_look(monkeypatch: pytest.MonkeyPatch, store: BatchRepository) -> Callable[..., list[float]]:
    """Does something at a look for the lock; the pauses before each, none of which takes time.

    The store has met others at the lock lately.
    """
    lock_of(store).contended_until = math.inf

    def do(number: int, action: Callable[[], object]) -> list[float]:
        pauses: list[float] = []

        def sleep(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == number:
                action()

        monkeypatch.setattr(module.time, "sleep", sleep)
        return pauses

    return do


def patience(engine: Engine) -> int:
    """What the pool's connection would wait for in SQLite's own way, in milliseconds."""
    with engine.connect() as connection:
        return int(connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one())


def test_it_is_looked_for_often(
    store: BatchRepository, writer: sqlite3.Connection, at_look: Callable[..., list[float]]
) -> None:
    """However long it takes, the next look is a few milliseconds away; then the write goes on."""
    pauses = at_look(50, lambda: writer.execute("COMMIT"))
    assert submit(store, "a").job_id == "a"
    assert len(pauses) == 50
    assert 0 < max(pauses) <= LAST_LOOK


def test_it_is_looked_for_often_once_it_was_taken(
    store: BatchRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A BEGIN that had to wait is remembered for some seconds, one that had not isn't."""
    now = iter([50.0, 50.0 + WAITED / 2, 60.0, 60.0 + 2 * WAITED])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(now))
    lock, found = WriteLock(), []
    for _ in range(2):
        with store.engine.connect() as connection:
            lock.take(connection.connection.driver_connection)
        found.append(lock.contended_until)
    assert found == [0.0, 60.0 + REMEMBERED]


def test_the_connection_waits_as_before(
    store: BatchRepository, writer: sqlite3.Connection, at_look: Callable[..., list[float]]
) -> None:
    """What it was told to wait stands again, for COMMIT and for whoever has it next."""
    before = patience(store.engine)
    at_look(2, lambda: writer.execute("COMMIT"))
    submit(store, "a")
    assert patience(store.engine) == before == 30_000


def test_it_waits_no_longer_than_it_was_told(
    path: Path, writer: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection with a timeout of its own gives up after it, and keeps it."""
    assert writer.in_transaction
    monkeypatch.setattr(transactions, "PATIENCE", 0.0)
    engine = create_store_engine(f"sqlite:///{path}", connect_args={"timeout": 0.02})
    store = BatchRepository(engine)
    for until in (0.0, math.inf):
        lock_of(store).contended_until = until
        with pytest.raises(StoreBusy):
            submit(store, "a")
        assert patience(engine) == 20
    engine.dispose()


def test_an_interrupted_wait_leaves_nothing_open(
    store: BatchRepository, writer: sqlite3.Connection, at_look: Callable[..., list[float]]
) -> None:
    """Ctrl-C ends the wait at once; the connection is as it was, in no transaction."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    at_look(1, interrupt)
    with pytest.raises(KeyboardInterrupt):
        submit(store, "a")
    assert patience(store.engine) == 30_000
    writer.execute("COMMIT")
    assert submit(store, "a").job_id == "a"
