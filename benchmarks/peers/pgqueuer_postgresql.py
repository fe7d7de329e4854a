"""PgQueuer on PostgreSQL: a job a target, a worker of one process over asyncpg.

It keeps no results, so the handler inserts them, by a pool of the application's, in a table of
the application's: one commit a target, several at a time.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta
from time import perf_counter
from typing import Any

from benchmarks.child import wait_for_go
from benchmarks.shape import RESULT, url_of

BATCH = 100
POOL = 20
PAUSE = 0.005
STORE = "INSERT INTO result (id, body) VALUES ($1, $2)"


def submit(url: str, jobs: int, targets: int) -> float:
    """Install, and enqueue every target, one job of the shape a statement; how many a second."""

    async def work() -> float:
        async with _queries(url) as (queries, connection):
            await queries.install()
            await queries.optimize_autovacuum()
            await connection.execute("CREATE TABLE result (id bigint PRIMARY KEY, body text)")
            begun = perf_counter()
            for job in range(jobs):
                urls: list[bytes | None] = [url_of(job, idx).encode() for idx in range(targets)]
                await queries.enqueue(["fetch"] * targets, urls, [0] * targets)
            return jobs * targets / (perf_counter() - begun)

    speed: float = _run(work())
    return speed


def drain(url: str, jobs: int, targets: int) -> float:
    """Work everything off; how many a second, from the first call to the last job's end."""
    times: list[float] = []
    ended: list[float] = []

    async def work() -> None:
        async with _worker(url) as (pgq, pool, stopping):

            @pgq.entrypoint("fetch")
            async def fetch(job: Any) -> None:
                if not times:
                    times.append(perf_counter())
                await pool.execute(STORE, job.id, RESULT)

            def note(count: int) -> None:
                ended.extend([perf_counter()] * count)
                if len(ended) >= jobs * targets:
                    stopping.set()

            _watch_ends(pgq.qm.queries, note)
            await _serve(pgq, stopping)
            stored = await pool.fetchval("SELECT count(*) FROM result")
            if stored != jobs * targets:
                raise SystemExit(f"PgQueuer's handler stored {stored} results")

    _run(work())
    return jobs * targets / (ended[-1] - times[0])


def worker(url: str, times: int) -> float:
    """Serve ``sender``: the median in ms from its call to the stored result.

    PgQueuer ends a job up to a tenth of a second later; that isn't counted.
    """
    found: list[float] = []

    async def work() -> None:
        async with _worker(url) as (pgq, pool, stopping):

            @pgq.entrypoint("fetch")
            async def fetch(job: Any) -> None:
                await pool.execute(STORE, job.id, RESULT)
                found.append(perf_counter() - float(job.payload))
                if len(found) == times:
                    stopping.set()

            asyncio.get_running_loop().run_in_executor(None, wait_for_go)
            await _serve(pgq, stopping)

    _run(work())
    return statistics.median(found) * 1000


def sender(url: str, times: int) -> None:
    """Enqueue one target after the other; each carries the time of its call."""

    async def work() -> None:
        async with _queries(url) as (queries, _):
            for _ in range(times):
                await asyncio.sleep(PAUSE)
                await queries.enqueue("fetch", repr(perf_counter()).encode())

    _run(work())


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    import uvloop  # type: ignore[import-not-found]

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


@asynccontextmanager
async def _queries(url: str) -> AsyncIterator[tuple[Any, Any]]:
    import asyncpg  # type: ignore[import-not-found]
    from pgqueuer.db import AsyncpgDriver  # type: ignore[import-not-found]
    from pgqueuer.queries import Queries  # type: ignore[import-not-found]

    connection = await asyncpg.connect(_dsn(url))
    try:
        yield Queries(AsyncpgDriver(connection)), connection
    finally:
        await connection.close()


@asynccontextmanager
async def _worker(url: str) -> AsyncIterator[tuple[Any, Any, asyncio.Event]]:
    import asyncpg
    from pgqueuer import PgQueuer  # type: ignore[import-not-found]
    from pgqueuer.db import AsyncpgDriver

    connection = await asyncpg.connect(_dsn(url))
    pool = await asyncpg.create_pool(_dsn(url), min_size=POOL, max_size=POOL)
    try:
        yield PgQueuer(AsyncpgDriver(connection)), pool, asyncio.Event()
    finally:
        await pool.close()
        await connection.close()


async def _serve(pgq: Any, stopping: asyncio.Event) -> None:
    async def stop() -> None:
        await stopping.wait()
        pgq.qm.shutdown.set()

    stopper = asyncio.create_task(stop())
    await pgq.qm.run(batch_size=BATCH, dequeue_timeout=timedelta(seconds=1))
    await stopper


def _watch_ends(queries: Any, note: Callable[[int], None]) -> None:
    """Hear of each set of jobs once PgQueuer has stored that they ended."""
    log_jobs: Callable[[list[Any]], Awaitable[None]] = queries.log_jobs

    async def heard(ends: list[Any]) -> None:
        await log_jobs(ends)
        note(len(ends))

    queries.log_jobs = heard


def _dsn(url: str) -> str:
    return url.replace("postgresql+psycopg://", "postgresql://")
