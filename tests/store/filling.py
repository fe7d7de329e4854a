"""Fills a database with many jobs by a few statements that every kind of database runs."""

from __future__ import annotations

from tests.support.database import Database

_COLUMNS = {
    "batch_job": "id, caller, caller_class, idem_key, status, error, targets_total, targets_done,"
    " created_at, lease, nbytes",
    "batch_target": "job_id, idx, url, options, status, nbytes, result",
    "batch_turn": "job_id, turn, next_idx, ready_at, queue, holder, token, held_until",
}


def add_jobs(database: Database, first: int, count: int, status: str, *, targets: int = 2) -> None:
    """Jobs ``jN`` from N = ``first`` on, up to 100,000, last used at second 100 + N.

    They are the callers' ``c0`` to ``c9``. Each target of a job that has ended has 2 bytes;
    ``queued`` ones get a turn in the queue "default", ``running`` ones a turn held by one of the
    runners ``r0`` to ``r9``, with the token ``tN``, before all that the store numbers.
    """
    live = status in ("queued", "running")
    done, numbers = 0 if live else targets, _numbers(first, count)
    _insert(
        database,
        "batch_job",
        f"{_named('j')}, {_named('c', '% 10')}, 'restricted', {_named('k')}, '{status}', '',"
        f" {targets}, {done}, 100 + n, 100 + n, {2 * done}",
        numbers,
    )
    state = "'pending', 0, NULL" if live else "'done', 2, '{}'"
    _insert(
        database,
        "batch_target",
        f"{_named('j')}, i, 'u', '', {state}",
        f"{numbers} CROSS JOIN ({_listed('i', targets)}) AS idxs",
    )
    database.query(f"UPDATE batch_total SET nbytes = nbytes + {2 * done * count} WHERE shard = 0")
    hold = f"{_named('r', '% 10')}, {_named('t')}, 10000000"
    if live:
        hold = hold if status == "running" else "NULL, NULL, NULL"
        _insert(
            database, "batch_turn", f"{_named('j')}, n - 100000, 0, 0, 'default', {hold}", numbers
        )


def _named(letter: str, change: str = "") -> str:
    """SQL for a letter and the number; only ``replace`` puts texts together everywhere."""
    return f"replace('{letter}#', '#', CAST(n {change} AS CHAR(9)))"


def _listed(name: str, count: int) -> str:
    return f"SELECT 0 AS {name}" + "".join(f" UNION ALL SELECT {n}" for n in range(1, count))


def _numbers(first: int, count: int) -> str:
    """SQL for a table of the numbers, each called n, put together from digits."""
    places = "abcde"[: len(str(count - 1))]
    value = " + ".join(f"{10**place} * {name}.d" for place, name in enumerate(places))
    digits = " CROSS JOIN ".join(f"({_listed('d', 10)}) AS {name}" for name in places)
    below = f"{value} < {count}"
    return f"(SELECT {first} + {value} AS n FROM {digits} WHERE {below}) AS numbers"


def _insert(database: Database, table: str, values: str, rows: str) -> None:
    database.query(f"INSERT INTO {table} ({_COLUMNS[table]}) SELECT {values} FROM {rows}")
