"""Fills a database with kept jobs by SQL: a million in a minute or two instead of an hour."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from sqlalchemy import Connection, create_engine, text

from batchmill.store import create_store_engine, migrate

TARGETS_EACH: Final = 2
STEP: Final = 100_000
"""Jobs a transaction."""

_NUMBERS: Final = {
    "sqlite": (
        "WITH RECURSIVE numbers (n) AS (SELECT :first UNION ALL SELECT n + 1 FROM numbers "
        "WHERE n < :last) "
    ),
    "postgresql": (
        "WITH numbers (n) AS "
        "(SELECT generate_series(CAST(:first AS bigint), CAST(:last AS bigint))) "
    ),
}
_TEXTS: Final = {
    "sqlite": ("printf('%032d', n)", "'caller-' || (n % 1000)", "'https://example.org/' || n"),
    "postgresql": (
        "lpad(n::text, 32, '0')",
        "'caller-' || (n % 1000)",
        "'https://example.org/' || n",
    ),
}
"""A job's id (older than any that a runner makes), its caller, its targets' URL."""
_AFTERWARDS: Final = {"sqlite": ("ANALYZE",), "postgresql": ("VACUUM ANALYZE",)}


def fill(url: str, count: int, *, result_bytes: int, age: int = 0) -> None:
    """Migrate, and add ``count`` done jobs of two targets, last used ``age`` seconds ago."""
    engine = create_store_engine(url, durability="normal")
    lease = int(time.time()) - age
    try:
        migrate.upgrade(engine)
        for first in range(1, count + 1, STEP):
            with engine.begin() as connection:
                last = min(first + STEP - 1, count)
                _insert(connection, first, last, result_bytes, lease)
    finally:
        engine.dispose()
    settle(url)


def settle(url: str) -> None:
    """Do now what the database would do sooner or later: statistics, vacuum, checkpoint."""
    engine = create_engine(url)
    if engine.url.get_backend_name() == "postgresql":
        engine = create_engine(url, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            for statement in _AFTERWARDS[engine.url.get_backend_name()]:
                connection.execute(text(statement))
            connection.commit()
    finally:
        engine.dispose()


def _insert(connection: Connection, first: int, last: int, result_bytes: int, lease: int) -> None:
    dialect = connection.dialect.name
    numbers, (job, caller, url) = _NUMBERS[dialect], _TEXTS[dialect]
    given = {"first": first, "last": last}
    nbytes = result_bytes * TARGETS_EACH
    _run(
        connection,
        "INSERT INTO batch_job (id, caller, caller_class, idem_key, status, error, targets_total, "
        f"targets_done, created_at, lease, nbytes) {numbers}"
        f"SELECT {job}, {caller}, 'restricted', {job}, 'done', '', {TARGETS_EACH}, "
        f"{TARGETS_EACH}, {lease}, {lease}, {nbytes} FROM numbers",
        given,
    )
    body = '{"content":"' + "x" * (result_bytes - 14) + '"}'
    for idx in range(TARGETS_EACH):
        _run(
            connection,
            "INSERT INTO batch_target (job_id, idx, url, options, status, attempt, lost, nbytes, "
            f"result) {numbers}"
            f"SELECT {job}, {idx}, {url}, '{{}}', 'done', 1, 0, {result_bytes}, :body "
            "FROM numbers",
            given | {"body": body},
        )
    total = nbytes * (last - first + 1)
    _run(
        connection,
        "UPDATE batch_total SET nbytes = nbytes + :total WHERE shard = 0",
        {"total": total},
    )


def _run(connection: Connection, statement: str, given: Mapping[str, object]) -> None:
    connection.execute(text(statement), given)
