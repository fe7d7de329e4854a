"""One database of a test: all that a test needs to know of its kind, and nothing of the store.

Tests are written against :class:`Database`; each kind of database is one subclass of it, and
``tests.support.fixtures`` says which kinds a test runs on.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ClassVar

from sqlalchemy import Engine
from sqlalchemy.pool import QueuePool

from batchmill.errors import StoreError
from batchmill.store import BatchRepository, create_store_engine

Row = tuple[Any, ...]
Dump = dict[str, list[Row]]

TABLES = ("batch_job", "batch_target", "batch_turn", "batch_runner", "batch_total")
"""Parents before their children, so that rows can be put back in this order."""

LOG_TABLES = (
    "CREATE TABLE finish_log (job_id TEXT, idx INTEGER, token TEXT, status TEXT)",
    "CREATE TABLE end_log (job_id TEXT, status TEXT)",
)


class Database(abc.ABC):
    """A migrated database of a test's own."""

    kind: ClassVar[str]
    faults: ClassVar[dict[str, type[StoreError] | None]]
    """Kinds of error that the driver raises, with ours; None: tried again inside."""
    row_locks: ClassVar[bool] = False
    """Writers wait for rows, and may skip them; else for the whole database."""
    last_turn: ClassVar[str]
    """SQL for a number that no turn is beyond."""
    impatient: ClassVar[dict[str, Any]]
    """What an engine is made with so that it doesn't wait for a lock."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._engines: list[Engine] = []

    # Engines

    def engine(self, url: str | None = None, **given: Any) -> Engine:
        """An engine of ours; it is disposed of with the database."""
        engine = create_store_engine(url or self.url, **({"durability": "normal"} | given))
        self._engines.append(engine)
        return engine

    def store(self, **given: Any) -> BatchRepository:
        """A repository on an engine of its own."""
        return BatchRepository(self.engine(**given))

    def close(self) -> None:
        """Dispose of every engine; nobody may still have a connection."""
        pools = [engine.pool for engine in self._engines]
        checked_out = [pool.checkedout() for pool in pools if isinstance(pool, QueuePool)]
        for engine in self._engines:
            engine.dispose()
        assert checked_out == [0] * len(checked_out), "a connection was left checked out"

    @abc.abstractmethod
    def erase(self) -> None:
        """Give the room of a large database back at once, after its close."""

    @abc.abstractmethod
    def empty_url(self) -> str:
        """The URL of a database of the same kind that has not been migrated; there is one."""

    # Raw SQL

    @abc.abstractmethod
    def query(self, sql: str, *params: Any) -> list[Row]:
        """Run raw SQL, with ``?`` for parameters, on a connection of its own; commit; its rows."""

    def alter(self, sql: str) -> None:
        """Change the tables themselves, of which nobody else must get any."""
        self.query(sql)

    @abc.abstractmethod
    def octets(self, column: str) -> str:
        """SQL for the bytes that a text takes in UTF-8."""

    @abc.abstractmethod
    def log_finishes(self) -> None:
        """Log each change of a target into done or failed, and of a job into a terminal status.

        By triggers that exist only here, into ``finish_log`` (with the token that the job's turn
        had then) and ``end_log``.
        """

    @abc.abstractmethod
    def damage(self) -> list[str]:
        """What the database's own check finds wrong with its file; nothing if it has no check."""

    @abc.abstractmethod
    def sizes(self) -> tuple[int, int]:
        """Bytes of the database, and of what it has written ahead."""

    def dump(self) -> Dump:
        """Every row of every table; tokens, which are random, only by whether there is one."""
        return {table: sorted(map(self.masked, self._rows(table)), key=repr) for table in TABLES}

    def snapshot(self) -> Dump:
        """Every row as it is, for :meth:`restore`."""
        return {table: self._rows(table) for table in TABLES}

    def restore(self, snapshot: Dump) -> None:
        """Put every row back as it was."""
        with self.writing() as run:
            for table in reversed(TABLES):
                run(f"DELETE FROM {table}")
            for table in TABLES:
                for row in snapshot[table]:
                    run(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", *row)

    def _rows(self, table: str) -> list[Row]:
        return self.query(f"SELECT * FROM {table}")

    @staticmethod
    def masked(row: Sequence[Any]) -> Row:
        """The row without what is random in it."""
        return tuple("a token" if _is_token(value) else value for value in row)

    # What can go wrong

    def waiting(self) -> bool | None:
        """Whether somebody waits for a lock, by the database's own account; None: it has none."""
        return None

    @abc.abstractmethod
    def writing(self) -> AbstractContextManager[Any]:
        """A connection's ``run(sql, *params)`` in one transaction; it has the write lock at once.

        Where each row has a lock of its own, it is all of our tables' that are taken.
        """

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Somebody else holds the write lock meanwhile."""
        with self.writing():
            yield

    @abc.abstractmethod
    def fault(self, kind: str) -> BaseException:
        """The driver's own error of one of the kinds of ``faults``."""

    @abc.abstractmethod
    def limit_room(self, engine: Engine, spare: int | None) -> None:
        """Let the database grow by so many pages (None: for ever) as the engine sees it."""

    @abc.abstractmethod
    def forbid_writes(self, engine: Engine, forbidden: bool) -> None:
        """Make the connections of an engine read-only, or writable again."""


def _is_token(value: Any) -> bool:
    """Tokens are 32 hex digits; no id in these tests looks like one."""
    return isinstance(value, str) and len(value) == 32 and not value.strip("0123456789abcdef")
