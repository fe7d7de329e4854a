"""The floor: hand-written sqlite3, one durable commit a target, one thread.

BEGIN IMMEDIATE, one UPDATE of the target, one of its job's counters, COMMIT: the least that a
store of single targets can do. Jobs are inserted one a transaction; results are read job by job.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from time import perf_counter

from benchmarks.shape import JOBS, RESULT, TARGETS, TOTAL, Figures, fresh, url_of

SCHEMA = """
CREATE TABLE job (id TEXT PRIMARY KEY, done INTEGER, nbytes INTEGER, lease INTEGER);
CREATE TABLE target (job TEXT, idx INTEGER, url TEXT, options TEXT, status TEXT, result TEXT,
                     PRIMARY KEY (job, idx));
"""


def run(folder: Path, durability: str) -> Figures:
    """One round on a fresh file."""
    connection = sqlite3.connect(fresh(folder, "floor"), isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {durability}")
        connection.executescript(SCHEMA)
        submit, drain = _timed(connection, _submit), _timed(connection, _drain)
        read = _timed(connection, _read)
        _verify(connection)
        (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
        return Figures(submit, drain, read, synchronous)
    finally:
        connection.close()


def _timed(connection: sqlite3.Connection, work: object) -> float:
    begun = perf_counter()
    work(connection)  # type: ignore[operator]
    return TOTAL / (perf_counter() - begun)


def _submit(connection: sqlite3.Connection) -> None:
    for job in range(JOBS):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO job VALUES (?, 0, 0, 1)", (f"{job:032x}",))
        connection.executemany(
            "INSERT INTO target VALUES (?, ?, ?, '{}', 'pending', NULL)",
            [(f"{job:032x}", idx, url_of(job, idx)) for idx in range(TARGETS)],
        )
        connection.execute("COMMIT")


def _drain(connection: sqlite3.Connection) -> None:
    for idx in range(TARGETS):
        for job in range(JOBS):
            key = f"{job:032x}"
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(
                "UPDATE target SET status = 'done', result = ? WHERE job = ? AND idx = ?",
                (RESULT, key, idx),
            )
            connection.execute(
                "UPDATE job SET done = done + 1, nbytes = nbytes + ?, lease = 2 WHERE id = ?",
                (len(RESULT), key),
            )
            connection.execute("COMMIT")


def _read(connection: sqlite3.Connection) -> None:
    for job in range(JOBS):
        connection.execute(
            "SELECT idx, url, status, result FROM target WHERE job = ? ORDER BY idx",
            (f"{job:032x}",),
        ).fetchall()


def _verify(connection: sqlite3.Connection) -> None:
    counted = connection.execute("SELECT count(*), sum(length(result)) FROM target").fetchone()
    kept = connection.execute("SELECT sum(done), sum(nbytes) FROM job").fetchone()
    expected = (TOTAL, TOTAL * len(RESULT))
    if counted != expected or kept != expected:
        raise SystemExit(f"the floor stored {counted} and counted {kept}, not {expected}")
