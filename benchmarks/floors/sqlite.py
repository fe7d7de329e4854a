"""The floor on SQLite: BEGIN IMMEDIATE, two UPDATEs a target, COMMIT, by the driver itself."""

from __future__ import annotations

import sqlite3
import statistics
from time import perf_counter

from benchmarks import floors
from benchmarks.shape import READS, RESULT, Figures, Shape, id_of, rate, url_of

SCHEMA = """
CREATE TABLE job (id TEXT PRIMARY KEY, done INTEGER, nbytes INTEGER, lease INTEGER);
CREATE TABLE target (job TEXT, idx INTEGER, url TEXT, options TEXT, status TEXT, result TEXT,
                     PRIMARY KEY (job, idx));
"""
STORE = "UPDATE target SET status = 'done', result = ? WHERE job = ? AND idx = ?"
COUNT = "UPDATE job SET done = done + 1, nbytes = nbytes + ?, lease = 2 WHERE id = ?"


def run(url: str, durability: str, jobs: int, targets: int, per_commit: int = 1) -> Figures:
    """One round on a fresh file."""
    shape = Shape(jobs, targets)
    connection = _connect(url, durability)
    try:
        submit = rate(shape.total, lambda: _submit(connection, shape))
        drain = rate(shape.total, lambda: _drain(connection, shape, per_commit))
        read = rate(shape.total * READS, lambda: _read(connection, shape))
        counted = connection.execute("SELECT count(*), sum(length(result)) FROM target").fetchone()
        kept = connection.execute("SELECT sum(done), sum(nbytes) FROM job").fetchone()
        floors.check(counted, kept, shape)
        return {"submit": submit, "drain": drain, "read": read}
    finally:
        connection.close()


def latency(url: str, durability: str, times: int) -> float:
    """Submit → stored of single targets, one after the other: the median in ms."""
    connection = _connect(url, durability)
    found: list[float] = []
    try:
        for job in range(times):
            begun = perf_counter()
            _insert(connection, job, 1)
            _store(connection, [(job, 0)])
            found.append(perf_counter() - begun)
    finally:
        connection.close()
    return statistics.median(found) * 1000


def _connect(url: str, durability: str) -> sqlite3.Connection:
    connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {durability}")
    connection.executescript(SCHEMA)
    return connection


def _submit(connection: sqlite3.Connection, shape: Shape) -> None:
    for job in range(shape.jobs):
        _insert(connection, job, shape.targets)


def _insert(connection: sqlite3.Connection, job: int, targets: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO job VALUES (?, 0, 0, 1)", (id_of(job),))
    connection.executemany(
        "INSERT INTO target VALUES (?, ?, ?, '{}', 'pending', NULL)",
        [(id_of(job), idx, url_of(job, idx)) for idx in range(targets)],
    )
    connection.execute("COMMIT")


def _drain(connection: sqlite3.Connection, shape: Shape, per_commit: int) -> None:
    for step in floors.steps(shape, per_commit):
        _store(connection, step)


def _store(connection: sqlite3.Connection, step: list[tuple[int, int]]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for job, idx in step:
        connection.execute(STORE, (RESULT, id_of(job), idx))
        connection.execute(COUNT, (len(RESULT), id_of(job)))
    connection.execute("COMMIT")


def _read(connection: sqlite3.Connection, shape: Shape) -> None:
    for job in list(range(shape.jobs)) * READS:
        connection.execute(
            "SELECT idx, url, status, result FROM target WHERE job = ? ORDER BY idx",
            (id_of(job),),
        ).fetchall()
