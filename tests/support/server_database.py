"""A database on a server: what PostgreSQL's and MariaDB's have in common."""

from __future__ import annotations

import abc
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, ClassVar
from urllib.parse import quote

from sqlalchemy import URL, Engine, event, make_url

from batchmill.store import create_store_engine, migrate
from tests.support.database import TABLES, Database, Dump, Row

_NUMBERS = itertools.count()
"""Of the databases; the server is this process's own."""
_FREE: dict[str, list[str]] = {}
"""By server, the databases that are empty again: to make one takes longer than most tests."""
_TURNS = (
    "SELECT job_id, row_number() OVER (ORDER BY turn), next_idx, targets_failed, ready_at,"
    " busy_since, queue, home, holder, token, held_until FROM batch_turn"
)


def _text(url: URL) -> str:
    """A URL as a text that means the same, where SQLAlchemy 2.0.0 leaves the % of a password."""
    return url.render_as_string().replace("***", quote(url.password or "", safe=""))


class ServerDatabase(Database):
    """One of a server's databases, made and dropped with its test."""

    row_locks = True
    triggers: ClassVar[tuple[str, ...]]
    in_a_hurry: ClassVar[str]
    """SQL that keeps a commit from waiting for the disk."""

    def __init__(self, server: str, *, hurried: bool = True) -> None:
        """Make it on the server that this URL is of; not ``hurried`` where a test ends that."""
        self._server = make_url(server)
        self._hurried = hurried
        self._free = _FREE.setdefault(server, [])
        self._odd: list[str] = []
        self._empty: str | None = None
        super().__init__(self._free.pop() if self._free else self._migrated())
        self._lock = threading.Lock()
        self._raw: Any = None

    # The driver's own connections

    @abc.abstractmethod
    def connect(self, url: URL | None = None) -> Any:
        """A new connection of the driver's in autocommit, to this database or another."""

    def _migrated(self) -> str:
        """The URL of a new database with our tables."""
        url = self._new()
        engine = create_store_engine(url)
        migrate.upgrade(engine)
        engine.dispose()
        return url

    def _new(self) -> str:
        """The URL of a new database without tables."""
        name = f"batch_{next(_NUMBERS)}"
        with closing(self.connect(self._server)) as connection:
            run_on(connection, f"CREATE DATABASE {name}")
            if self._hurried:
                run_on(connection, self.in_a_hurry.format(name))
        return _text(self._server.set(database=name))

    def query(self, sql: str, *params: Any) -> list[Row]:
        """See :class:`Database`; the connection is kept."""
        with self._lock:
            if self._raw is None:
                self._raw = self.connect()
            return run_on(self._raw, sql, *params)

    def close(self) -> None:
        """See :class:`Database`; emptied, it is the next one's, else it is dropped."""
        super().close()
        if self.url not in self._odd:
            for table in reversed(TABLES[:-1]):
                self.query(f"DELETE FROM {table}")
            self.query("UPDATE batch_total SET nbytes = 0, turns = 0")
            self._free.append(self.url)
        if self._raw is not None:
            self._raw.close()
        with closing(self.connect(self._server)) as connection:
            for url in self._odd:
                run_on(connection, f"DROP DATABASE {make_url(url).database}")

    def erase(self) -> None:
        """See :class:`Database`; its close has done it."""

    def empty_url(self) -> str:
        """See :class:`Database`."""
        if self._empty is None:
            self._empty = self._new()
            self._odd.append(self._empty)
        return self._empty

    # Raw SQL

    def alter(self, sql: str) -> None:
        """See :class:`Database`; it is dropped after its test."""
        if self.url not in self._odd:
            self._odd.append(self.url)
        self.query(sql)

    def octets(self, column: str) -> str:
        """See :class:`Database`."""
        return f"octet_length({column})"

    def log_finishes(self) -> None:
        """See :class:`Database`."""
        for statement in self.triggers:
            self.alter(statement)

    def damage(self) -> list[str]:
        """See :class:`Database`; a server looks after its own files."""
        return []

    def dump(self) -> Dump:
        """See :class:`Database`.

        Of a turn's number only the order counts, and of the byte total only the sum: a number
        comes from a sequence, which nothing takes back, and a shard is picked at random.
        """
        found = super().dump()
        found["batch_turn"] = sorted(map(self.masked, self.query(_TURNS)), key=repr)
        found["batch_total"] = self.query("SELECT count(*), sum(nbytes) FROM batch_total")
        return found

    # What can go wrong

    def limit_room(self, engine: Engine, spare: int | None) -> None:
        """See :class:`Database`; the room of a server is its machine's."""
        raise NotImplementedError

    @abc.abstractmethod
    def end_connection(self, connection: Any) -> None:
        """Let the server end a connection of the driver's, from another one."""

    @abc.abstractmethod
    def setting(self, forbidden: bool) -> str:
        """SQL that makes what comes next on a connection read-only, or writable."""

    def forbid_writes(self, engine: Engine, forbidden: bool) -> None:
        """See :class:`Database`."""
        settings: dict[str, str] = engine.__dict__.setdefault("_test_settings", {})
        if not settings:
            event.listen(engine, "checkout", lambda c, *_: run_on(c, settings["of writes"]))
        settings["of writes"] = self.setting(forbidden)


def run_on(connection: Any, sql: str, *params: Any) -> list[Row]:
    """Run raw SQL with ``?`` for parameters; its rows."""
    cursor = connection.cursor()
    try:
        if params:
            sql = sql.replace("%", "%%").replace("?", "%s")
        cursor.execute(sql, params or None)
        return [tuple(row) for row in cursor.fetchall()] if cursor.description else []
    finally:
        cursor.close()


@contextmanager
def one_transaction(connection: Any, *first: str) -> Iterator[Callable[..., Any]]:
    """``run(sql, *params)`` in a transaction of the connection's, which is closed after it."""
    try:
        for statement in ("BEGIN", *first):
            run_on(connection, statement)
        yield lambda sql, *params: run_on(connection, sql, *params)
        run_on(connection, "COMMIT")
    finally:
        connection.close()
