"""The floor on MariaDB: PyMySQL, one connection, two UPDATEs and one commit a target."""

from __future__ import annotations

import statistics
from time import perf_counter
from typing import Any

from sqlalchemy import make_url

from benchmarks import floors
from benchmarks.shape import READS, RESULT, Figures, Shape, id_of, rate, url_of

TEXT = "CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
SCHEMA = f"""
CREATE TABLE job (id VARCHAR(64) {TEXT} PRIMARY KEY, done BIGINT, nbytes BIGINT, lease BIGINT);
CREATE TABLE target (job VARCHAR(64) {TEXT}, idx INT, url LONGTEXT {TEXT},
                     options LONGTEXT {TEXT}, status VARCHAR(16) {TEXT},
                     result LONGTEXT {TEXT}, PRIMARY KEY (job, idx))
"""
STORE = "UPDATE target SET status = 'done', result = %s WHERE job = %s AND idx = %s"
COUNT = "UPDATE job SET done = done + 1, nbytes = nbytes + %s, lease = 2 WHERE id = %s"


def run(url: str, durability: str, jobs: int, targets: int, per_commit: int = 1) -> Figures:
    """One round in an empty database; ``durability`` is always the server's."""
    del durability
    shape = Shape(jobs, targets)
    connection = _connect(url)
    try:
        cursor = connection.cursor()
        submit = rate(shape.total, lambda: _submit(connection, cursor, shape))
        drain = rate(shape.total, lambda: _drain(connection, cursor, shape, per_commit))
        read = rate(shape.total * READS, lambda: _read(cursor, shape))
        counted = _pair(cursor, "SELECT count(*), sum(length(result)) FROM target")
        floors.check(counted, _pair(cursor, "SELECT sum(done), sum(nbytes) FROM job"), shape)
        return {"submit": submit, "drain": drain, "read": read}
    finally:
        connection.close()


def latency(url: str, durability: str, times: int) -> float:
    """Submit → stored of single targets, one after the other: the median in ms."""
    del durability
    found: list[float] = []
    connection = _connect(url)
    try:
        cursor = connection.cursor()
        for job in range(times):
            begun = perf_counter()
            _insert(connection, cursor, job, 1)
            _store(connection, cursor, [(job, 0)])
            found.append(perf_counter() - begun)
    finally:
        connection.close()
    return statistics.median(found) * 1000


def _connect(url: str) -> Any:
    import pymysql  # type: ignore[import-untyped]

    parts = make_url(url)
    connection = pymysql.connect(
        host=str(parts.host),
        port=int(parts.port or 3306),
        user=str(parts.username),
        password=str(parts.password or ""),
        database=parts.database,
        charset="utf8mb4",
    )
    for statement in SCHEMA.split(";"):
        connection.cursor().execute(statement)
    return connection


def _submit(connection: Any, cursor: Any, shape: Shape) -> None:
    for job in range(shape.jobs):
        _insert(connection, cursor, job, shape.targets)


def _insert(connection: Any, cursor: Any, job: int, targets: int) -> None:
    cursor.execute("INSERT INTO job VALUES (%s, 0, 0, 1)", (id_of(job),))
    cursor.executemany(  # the driver sends one statement of many rows
        "INSERT INTO target VALUES (%s, %s, %s, '{}', 'pending', NULL)",
        [(id_of(job), idx, url_of(job, idx)) for idx in range(targets)],
    )
    connection.commit()


def _drain(connection: Any, cursor: Any, shape: Shape, per_commit: int) -> None:
    for step in floors.steps(shape, per_commit):
        _store(connection, cursor, step)


def _store(connection: Any, cursor: Any, step: list[tuple[int, int]]) -> None:
    for job, idx in step:
        cursor.execute(STORE, (RESULT, id_of(job), idx))
        cursor.execute(COUNT, (len(RESULT), id_of(job)))
    connection.commit()


def _read(cursor: Any, shape: Shape) -> None:
    for job in list(range(shape.jobs)) * READS:
        cursor.execute(
            "SELECT idx, url, status, result FROM target WHERE job = %s ORDER BY idx",
            (id_of(job),),
        )
        cursor.fetchall()


def _pair(cursor: Any, statement: str) -> tuple[int, int]:
    cursor.execute(statement)
    first, second = cursor.fetchone()
    return int(first), int(second)
