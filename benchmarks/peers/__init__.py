"""The three peers nearest to batchmill, over the same work.

Each module runs in a virtual environment of its own (see ``environments``), with the
documented settings that make it fastest, and imports nothing of batchmill. Its functions are
called in children: ``submit``, then ``drain`` in another process, then ``read``; ``worker`` and
``sender`` measure submit → stored between two processes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Peer:
    """One way to run a peer.

    ``requirement`` is its name in pyproject's extra ``bench``; ``options`` go to each function;
    ``floor`` is the database, and the floor that it is compared with.
    """

    name: str
    module: str
    requirement: str
    floor: str
    settings: str
    options: dict[str, bool]
    reads: bool
    """Whether it keeps results."""


PEERS = (
    Peer(
        "huey",
        "huey_sqlite",
        "huey",
        "sqlite-full",
        "SqliteHuey, fsync, WAL, cache 64 MiB; consumer of one thread, polling every 1 ms",
        {"fsync": True},
        reads=True,
    ),
    Peer(
        "huey, no sync at all",
        "huey_sqlite",
        "huey",
        "sqlite-normal",
        "the same without fsync: synchronous OFF, beside the NORMAL floor",
        {"fsync": False},
        reads=True,
    ),
    Peer(
        "litequeue",
        "litequeue_sqlite",
        "litequeue",
        "sqlite-normal",
        "a queue only: pop and done, nothing stored; 32 puts a transaction; always NORMAL",
        {},
        reads=False,
    ),
    Peer(
        "PgQueuer",
        "pgqueuer_postgresql",
        "pgqueuer",
        "postgresql",
        "asyncpg pool, durable, autovacuum as it recommends, batches of 100; keeps no results: "
        "its handler inserts them in a table of the application's",
        {},
        reads=False,
    ),
)
