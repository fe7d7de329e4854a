"""The same few jobs in each kind of store, and a look at everything in there."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from batchmill.records import BatchJob, BatchTarget, Claim, Limits, Outcome
from batchmill.runner import Result, Runner, RunnerConfig
from batchmill.store import BatchRepository, create_store_engine, migrate
from batchmill.testing import MemoryStore
from tests.support.database import TABLES
from tests.support.server_database import ServerDatabase

NOW: Final = 1_000_000
HOUR: Final = timedelta(hours=1)
WIDE: Final = Limits(100, 100, 100)
STORES: Final = ("MemoryStore", "SQLite file", "SQLite in memory")
_NO_DATA: Final = ("_lock", "_clock", "_hits", "_misses")


@dataclass
class World:
    """A store with jobs "hand", "live" (its target 1 is in flight) and "over"."""

    store: Any
    claim: Claim
    rows: Callable[[], object]
    """Everything the store holds, to compare before with after."""
    close_store: Callable[[], None] = lambda: None
    runner: Runner[Any] | None = None
    drained: bool = False

    def run(self, *, start: bool) -> Runner[Any]:
        """A local runner with nothing to do."""
        if self.runner is None:
            config = RunnerConfig(jobs_per_caller=99, jobs_total=99)
            self.runner = Runner(self.store, _fetch, config, clock=lambda: NOW, queue="idle")
        return self.runner.start() if start else self.runner

    def close(self) -> None:
        """End the runner, then the store."""
        if self.runner is not None:
            self.runner.close(5)
            self.runner = None
        self.close_store()


class Worlds:
    """Makes worlds: SQLite's are copies of one file, since filling it takes longest."""

    def __init__(self, folder: Path) -> None:
        self._filled = folder / "filled.db"
        self._copies = 0
        engine = create_store_engine(f"sqlite:///{self._filled}", durability="normal")
        migrate.upgrade(engine)
        self._claim = _fill(BatchRepository(engine))
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        engine.dispose()

    def open(self, kind: str) -> World:
        """A fresh one of this kind of store."""
        if kind == "MemoryStore":
            return _memory()
        if kind == "SQLite file":
            return self._file()
        return self._in_memory()

    def _file(self) -> World:
        self._copies += 1
        path = self._filled.with_name(f"{self._copies}.db")
        path.write_bytes(self._filled.read_bytes())
        return self._sql(f"sqlite:///{path}")

    def _in_memory(self) -> World:
        world = self._sql("sqlite://")
        with closing(sqlite3.connect(self._filled)) as source:
            copy = world.store.engine.raw_connection()
            source.backup(copy.driver_connection)
            copy.close()
        return world

    def _sql(self, url: str) -> World:
        store = BatchRepository(create_store_engine(url, durability="normal"))
        return World(store, self._claim, lambda: _sql_rows(store), lambda: _close(store))


class ServerWorld:
    """Makes worlds on one database of a server: one at a time, its rows put back for each."""

    def __init__(self, database: ServerDatabase) -> None:
        self._database = database
        self._engine = database.engine()
        self._claim = _fill(BatchRepository(self._engine))
        self._filled = database.snapshot()
        self._last: World | None = None

    def open(self) -> World:
        """A fresh one; the one before is closed."""
        if self._last is not None:
            self._last.close()
        self._database.restore(self._filled)
        store = BatchRepository(self._engine)
        self._last = World(store, self._claim, self._database.snapshot, self._check)
        return self._last

    def _check(self) -> None:
        assert self._engine.pool.checkedout() == 0  # type: ignore[attr-defined]


def _memory() -> World:
    store = MemoryStore(clock=lambda: NOW)
    claim = _fill(store)
    return World(
        store, claim, lambda: repr({k: v for k, v in vars(store).items() if k not in _NO_DATA})
    )


def _sql_rows(store: BatchRepository) -> object:
    with store.engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        return [driver.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES]


def _close(store: BatchRepository) -> None:
    checked_out = store.engine.pool.checkedout()  # type: ignore[attr-defined]
    store.engine.dispose()
    assert checked_out == 0


def job(job_id: str, **changes: Any) -> BatchJob:
    """A job of ada's; its key is its id."""
    return replace(
        BatchJob(job_id, "ada", "restricted", job_id, created_at=NOW, lease=NOW), **changes
    )


def _fill(store: Any) -> Claim:
    """The jobs; the claim that is in flight."""
    store.create_job(job("hand"))
    store.put_targets("hand", [BatchTarget("", idx, "u") for idx in (1, 2)])
    (claim,) = _submit(store, "over", 1)
    _exchange(store, [Outcome("over", 0, claim.token, "done", '{"content":1}')], want=0)
    (claim,) = _submit(store, "live", 3)
    (claim,) = _exchange(store, [Outcome("live", 0, claim.token, "done", '{"content":1}')])
    return claim


def _submit(store: Any, job_id: str, count: int) -> Sequence[Claim]:
    rows = [BatchTarget("", idx, "u") for idx in range(count)]
    new = job(job_id, targets_total=count)
    store.submit_job(new, rows, queue="default", home=None, limits=WIDE, now=NOW, ttl=HOUR)
    return _exchange(store, [])


def _exchange(store: Any, outcomes: Sequence[Outcome], want: int = 1) -> Sequence[Claim]:
    options: dict[str, Any] = {"queue": "default", "shared": True, "now": NOW, "hold_for": 60}
    claims: Sequence[Claim] = store.exchange(
        "r", outcomes, want=want, max_bytes=10**9, **options
    ).claims
    return claims


def _fetch(*_: Any) -> Result:
    raise NotImplementedError


def plain(value: Any) -> Any:
    """An answer in plain Python, tokens aside, to compare one store's with another's."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            each.name: plain(getattr(value, each.name))
            for each in fields(value)
            if each.name != "token"
        }
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | Iterator):
        return [plain(each) for each in value]
    if isinstance(value, str):
        return "token" if _TOKEN.fullmatch(value) else str(value)
    return value


_TOKEN: Final = re.compile(r"[0-9a-f]{32}")


def contents(store: Any) -> Any:
    """All that a store shows of its jobs."""
    return [plain((job, store.get_targets(job.id))) for job in store.list_jobs(limit=None)]
