"""The floor on PostgreSQL: psycopg, one connection, one data-modifying CTE and commit a target.

A job is inserted by one statement too. The statements are prepared, and the settings are the
server's own: synchronous commit on.
"""

from __future__ import annotations

import statistics
from time import perf_counter
from typing import Any

from benchmarks import floors
from benchmarks.shape import READS, RESULT, Figures, Shape, id_of, rate, url_of

SCHEMA = """
CREATE TABLE job (id text COLLATE "C" PRIMARY KEY, done bigint, nbytes bigint, lease bigint);
CREATE TABLE target (job text COLLATE "C", idx int, url text, options text, status text,
                     result text, PRIMARY KEY (job, idx));
"""
INSERT = """
WITH new AS (INSERT INTO job VALUES (%s, 0, 0, 1) RETURNING id)
INSERT INTO target
SELECT new.id, each.idx - 1, each.url, '{}', 'pending', NULL
FROM new, unnest(%s::text[]) WITH ORDINALITY AS each (url, idx)
"""
STORE = """
WITH stored AS (
    UPDATE target SET status = 'done', result = %s WHERE job = %s AND idx = %s RETURNING job
)
UPDATE job SET done = done + 1, nbytes = nbytes + %s, lease = 2 FROM stored WHERE id = stored.job
"""
READ = "SELECT idx, url, status, result FROM target WHERE job = %s ORDER BY idx"


def run(url: str, durability: str, jobs: int, targets: int, per_commit: int = 1) -> Figures:
    """One round in an empty database; ``durability`` is always the server's."""
    del durability
    shape = Shape(jobs, targets)
    with _connect(url) as connection:
        submit = rate(shape.total, lambda: _submit(connection, shape))
        drain = rate(shape.total, lambda: _drain(connection, shape, per_commit))
        read = rate(shape.total * READS, lambda: _read(connection, shape))
        counted = connection.execute("SELECT count(*), sum(length(result)) FROM target").fetchone()
        kept = connection.execute("SELECT sum(done)::bigint, sum(nbytes)::bigint FROM job")
        floors.check(counted, kept.fetchone(), shape)
        return {"submit": submit, "drain": drain, "read": read}


def latency(url: str, durability: str, times: int) -> float:
    """Submit → stored of single targets, one after the other: the median in ms."""
    del durability
    found: list[float] = []
    with _connect(url) as connection:
        for job in range(times):
            begun = perf_counter()
            connection.execute(INSERT, (id_of(job), [url_of(job, 0)]), prepare=True)
            _store(connection, job, 0)
            found.append(perf_counter() - begun)
    return statistics.median(found) * 1000


def _connect(url: str) -> Any:
    import psycopg

    plain = url.replace("postgresql+psycopg://", "postgresql://")
    connection = psycopg.connect(plain, autocommit=True)
    connection.execute(SCHEMA)
    return connection


def _submit(connection: Any, shape: Shape) -> None:
    for job in range(shape.jobs):
        urls = [url_of(job, idx) for idx in range(shape.targets)]
        connection.execute(INSERT, (id_of(job), urls), prepare=True)


def _drain(connection: Any, shape: Shape, per_commit: int) -> None:
    if per_commit == 1:
        for ((job, idx),) in floors.steps(shape, 1):
            _store(connection, job, idx)
        return
    for step in floors.steps(shape, per_commit):
        with connection.transaction():
            for job, idx in step:
                _store(connection, job, idx)


def _store(connection: Any, job: int, idx: int) -> None:
    connection.execute(STORE, (RESULT, id_of(job), idx, len(RESULT)), prepare=True)


def _read(connection: Any, shape: Shape) -> None:
    for job in list(range(shape.jobs)) * READS:
        connection.execute(READ, (id_of(job),), prepare=True).fetchall()
