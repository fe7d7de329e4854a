"""batchmill over the same work: a Runner that submits, drains and reads back, in a child."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from os import getpid
from time import perf_counter
from typing import Any, Final

from sqlalchemy import Engine, event

from batchmill import Hooks, Result, Runner, RunnerConfig
from batchmill.store import BatchRepository, create_store_engine, migrate
from benchmarks.shape import CONTENT, READS, RESULT, Figures, Shape, rate, url_of

SYNCHRONOUS: Final = {"full": 2, "normal": 1}


class Person:
    """Who submits."""

    name = "benchmark"


def run(
    url: str,
    durability: str,
    workers: int,
    jobs: int,
    targets: int,
    *,
    cleaned: bool = False,
) -> Figures:
    """One round: submit before the start, drain, read back; ``cleaned`` deletes it all again."""
    shape = Shape(jobs, targets)
    with opened(url, durability) as store:
        warm(store)
        meter = Meter(jobs)
        runner = Runner(store, meter.fetch, config(workers, shape), hooks=Hooks(job=meter.job))
        ids: list[str] = []
        submit = rate(shape.total, lambda: ids.extend(submitted(runner, shape)))
        with runner:
            meter.finished.wait()
            _check(runner, ids, shape)
            read = rate(shape.total * READS, lambda: _read(runner, ids))
        if cleaned:
            for job_id in ids:
                store.delete_job(job_id)
        return {"submit": submit, "drain": shape.total / meter.seconds, "read": read}


def warm(store: BatchRepository) -> None:
    """Do one job unmeasured: SQLAlchemy compiles a statement when a process first needs it."""
    with Runner(store, Meter(1).fetch, config(1, Shape(8, 2))) as runner:
        job_id = runner.submit(Person(), [f"warm-{getpid()}-{idx}" for idx in range(2)]).job_id
        runner.wait(job_id, timeout=60)
        _read(runner, [job_id])
    store.delete_job(job_id)


def config(workers: int, shape: Shape, **others: Any) -> RunnerConfig:
    """Caps that let everything in, and a budget that evicts nothing."""
    return RunnerConfig(
        workers=workers,
        worker_limit=workers,
        jobs_per_caller=shape.jobs,
        jobs_total=shape.jobs,
        targets_per_job=shape.targets,
        max_bytes=1 << 40,
        ttl=timedelta(days=30),
        **others,
    )


def submitted(runner: Runner[Person], shape: Shape) -> list[str]:
    """The ids of the jobs, one submit each."""
    return [
        runner.submit(Person(), (url_of(job, idx) for idx in range(shape.targets))).job_id
        for job in range(shape.jobs)
    ]


class Meter:
    """Times the drain from the first fetch to the commit that ended the last job."""

    def __init__(self, jobs: int) -> None:
        self.finished = threading.Event()
        self.first = 0.0
        self.last = 0.0
        self._left = jobs

    @property
    def seconds(self) -> float:
        """How long the drain took."""
        return self.last - self.first

    def fetch(self, _context: Any, _caller: Any, _target: Any) -> Result:
        """No work at all, 1 KiB of result."""
        if not self.first:
            self.first = perf_counter()
        return Result(CONTENT)

    def job(self, outcome: str) -> None:
        """A job was created or ended: the last end, however it was, is the end of the drain."""
        if outcome not in ("created", "reused"):
            self._left -= 1
            if not self._left:
                self.last = perf_counter()
                self.finished.set()


@contextmanager
def opened(url: str, durability: str) -> Iterator[BatchRepository]:
    """A store on a migrated database; on SQLite every connection is seen to be as durable."""
    engine = create_store_engine(url, durability=durability)  # type: ignore[arg-type]
    levels = _levels(engine) if engine.url.get_backend_name() == "sqlite" else set()
    try:
        migrate.upgrade(engine)
        yield BatchRepository(engine)
        if levels - {SYNCHRONOUS[durability]}:
            raise SystemExit(f"PRAGMA synchronous was {levels}, not {durability}")
    finally:
        engine.dispose()


def _levels(engine: Engine) -> set[int]:
    """``PRAGMA synchronous``, as each connection of the engine reads it when it is made."""
    levels: set[int] = set()

    @event.listens_for(engine, "connect")
    def read_back(connection: Any, _record: Any) -> None:
        (level,) = connection.execute("PRAGMA synchronous").fetchone()
        levels.add(level)

    return levels


def _read(runner: Runner[Person], ids: list[str]) -> None:
    for _ in range(READS):
        for job_id in ids:
            for _row in runner.results(job_id):
                pass


def _check(runner: Runner[Person], ids: list[str], shape: Shape) -> None:
    """Everything that was to be stored is there, and the counters say so."""
    for job_id in ids:
        job, rows = runner.progress(job_id), list(runner.results(job_id))
        assert job is not None
        whole = (job.status, job.targets_done, job.nbytes) == (
            "done",
            shape.targets,
            shape.targets * len(RESULT),
        )
        if not whole or [row.result for row in rows] != [Result(CONTENT)] * shape.targets:
            raise SystemExit(f"batchmill stored {job} and {len(rows)} rows")
