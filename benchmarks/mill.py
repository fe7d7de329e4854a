"""batchmill over the same work: a Runner that submits, drains and reads back."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

from sqlalchemy import Engine, event

from batchmill import Hooks, Result, Runner, RunnerConfig
from batchmill.store import BatchRepository, create_store_engine, migrate
from benchmarks.shape import CONTENT, JOBS, RESULT, TARGETS, TOTAL, Figures, fresh, url_of


class _Person:
    name = "benchmark"


def run(folder: Path, durability: str, workers: int) -> Figures:
    """One round on a fresh file with so many workers."""
    path = fresh(folder, "mill")
    with _engine(path, durability) as (engine, synchronous):
        migrate.upgrade(engine)
        meter = _Meter()
        runner = Runner(
            BatchRepository(engine),
            meter.fetch,
            RunnerConfig(
                workers=workers, worker_limit=workers, jobs_per_caller=JOBS, jobs_total=JOBS
            ),
            hooks=Hooks(job=meter.job),
        )
        begun = perf_counter()
        ids = [
            runner.submit(_Person(), [url_of(job, idx) for idx in range(TARGETS)]).job_id
            for job in range(JOBS)
        ]
        submit = perf_counter() - begun
        with runner:
            meter.finished.wait()
            begun = perf_counter()
            rows = sum(len(list(runner.results(job_id))) for job_id in ids)
            read = perf_counter() - begun
        _verify(path, rows)
        (level,) = synchronous
        return Figures(TOTAL / submit, TOTAL / meter.seconds, TOTAL / read, level)


class _Meter:
    """Times the drain from the first fetch to the last stored result."""

    def __init__(self) -> None:
        self.finished = threading.Event()
        self._first = 0.0
        self._last = 0.0
        self._left = JOBS

    @property
    def seconds(self) -> float:
        """How long the drain took."""
        return self._last - self._first

    def fetch(self, _context: Any, _caller: Any, _target: Any) -> Result:
        """No work at all, 1 KiB of result."""
        if not self._first:
            self._first = perf_counter()
        return Result(CONTENT)

    def job(self, outcome: str) -> None:
        """A job was created or ended: the last end is the end of the drain."""
        if outcome == "done":
            self._left -= 1
            if not self._left:
                self._last = perf_counter()
                self.finished.set()


@contextmanager
def _engine(path: Path, durability: str) -> Iterator[tuple[Engine, set[int]]]:
    """The engine, and ``PRAGMA synchronous`` as each connection that commits reads it."""
    engine = create_store_engine(f"sqlite:///{path}", durability=durability)  # type: ignore[arg-type]
    levels: set[int] = set()

    @event.listens_for(engine, "connect")
    def read_back(connection: Any, _record: Any) -> None:
        (level,) = connection.execute("PRAGMA synchronous").fetchone()
        levels.add(level)

    try:
        yield engine, levels
    finally:
        engine.dispose()


def _verify(path: Path, rows: int) -> None:
    connection = sqlite3.connect(path)
    stored = connection.execute(
        "SELECT count(*), sum(length(CAST(result AS BLOB))) FROM batch_target WHERE status = 'done'"
    ).fetchone()
    kept = connection.execute("SELECT sum(targets_done), sum(nbytes) FROM batch_job").fetchone()
    connection.close()
    expected = (TOTAL, TOTAL * len(RESULT))
    if stored != expected or kept != expected or rows != TOTAL:
        raise SystemExit(f"batchmill stored {stored}, counted {kept}, read {rows}: not {expected}")
