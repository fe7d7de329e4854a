"""SQLite, in a file."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

from batchmill.errors import StoreError, StoreFull, StoreUnavailable
from batchmill.store import create_store_engine, migrate
from tests.support.database import LOG_TABLES, Database, Row
from tests.support.injection import TellingConnection

_TRIGGERS = (
    """
    CREATE TRIGGER log_finish AFTER UPDATE OF status ON batch_target
    WHEN NEW.status IN ('done', 'failed') AND OLD.status NOT IN ('done', 'failed')
    BEGIN
        INSERT INTO finish_log VALUES (
            NEW.job_id, NEW.idx,
            (SELECT token FROM batch_turn WHERE job_id = NEW.job_id), NEW.status
        );
    END
    """,
    """
    CREATE TRIGGER log_end AFTER UPDATE OF status ON batch_job
    WHEN NEW.status NOT IN ('queued', 'running')
    BEGIN INSERT INTO end_log VALUES (NEW.id, OLD.status || ' to ' || NEW.status); END
    """,
)
_CODES = {
    "busy": sqlite3.SQLITE_BUSY,
    "full": sqlite3.SQLITE_FULL,
    "read-only": sqlite3.SQLITE_READONLY,
    "input/output": sqlite3.SQLITE_IOERR,
    "corrupt": sqlite3.SQLITE_CORRUPT,
    "other": sqlite3.SQLITE_ERROR,
}


class SqliteDatabase(Database):
    """A file."""

    kind = "sqlite"
    faults = {  # noqa: RUF012 - a constant of the class
        "busy": None,
        "full": StoreFull,
        "read-only": StoreUnavailable,
        "input/output": StoreUnavailable,
        "corrupt": StoreUnavailable,
        "other": StoreError,
    }
    last_turn = "(SELECT sum(turns) FROM batch_total)"
    impatient = {"connect_args": {"timeout": 0.01}}  # noqa: RUF012 - a constant of the class

    def __init__(self, path: Path) -> None:
        super().__init__(f"sqlite:///{path}")
        self.path = path
        self._lock = threading.Lock()
        self._raw: sqlite3.Connection | None = None

    def engine(self, url: str | None = None, **given: Any) -> Engine:
        """See :class:`Database`; its connections can tell points."""
        connect_args = {"factory": TellingConnection} | given.pop("connect_args", {})
        return super().engine(url, connect_args=connect_args, **given)

    def close(self) -> None:
        """See :class:`Database`."""
        if self._raw is not None:
            self._raw.close()
        super().close()

    def erase(self) -> None:
        """See :class:`Database`."""
        for file in self.path.parent.glob(f"{self.path.name}*"):
            file.unlink()

    def empty_url(self) -> str:
        """See :class:`Database`."""
        return f"sqlite:///{self.path.with_name('fresh.db')}"

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=30, isolation_level=None)) as connection:
            yield connection

    def query(self, sql: str, *params: Any) -> list[Row]:
        """See :class:`Database`; the connection is kept, opening one takes longer than a query."""
        with self._lock:
            if self._raw is None:
                self._raw = sqlite3.connect(
                    self.path, timeout=30, isolation_level=None, check_same_thread=False
                )
            return self._raw.execute(sql, params).fetchall()

    def octets(self, column: str) -> str:
        """See :class:`Database`; ``length()`` of a text counts characters, up to a NUL."""
        return f"length(CAST({column} AS BLOB))"

    def log_finishes(self) -> None:
        """See :class:`Database`."""
        for statement in (*LOG_TABLES, *_TRIGGERS):
            self.query(statement)

    def damage(self) -> list[str]:
        """See :class:`Database`."""
        found = [row[0] for row in self.query("PRAGMA integrity_check")]
        return [] if found == ["ok"] else found

    def sizes(self) -> tuple[int, int]:
        """See :class:`Database`."""
        wal = self.path.with_name(f"{self.path.name}-wal")
        return self.path.stat().st_size, wal.stat().st_size if wal.exists() else 0

    @contextmanager
    def writing(self) -> Iterator[Callable[..., Any]]:
        """See :class:`Database`."""
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield lambda sql, *params: connection.execute(sql, params)
            connection.execute("COMMIT")

    def fault(self, kind: str) -> BaseException:
        """See :class:`Database`."""
        error = sqlite3.OperationalError(f"{kind}: not for anybody's eyes")
        error.sqlite_errorcode = _CODES[kind]
        return error

    def limit_room(self, engine: Engine, spare: int | None) -> None:
        """See :class:`Database`; a setting of each connection, and of no file."""
        with self._connected() as connection:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
        self._set(engine, "max_page_count", 2**30 if spare is None else pages + spare)

    def forbid_writes(self, engine: Engine, forbidden: bool) -> None:
        """See :class:`Database`."""
        self._set(engine, "query_only", int(forbidden))

    def _set(self, engine: Engine, pragma: str, value: int) -> None:
        """Whenever a connection of the engine's is next taken out of its pool."""
        settings: dict[str, int] = engine.__dict__.setdefault("_test_settings", {})
        if not settings:
            event.listen(engine, "checkout", lambda c, *_: _apply(c, settings))
        settings[pragma] = value


def _apply(connection: sqlite3.Connection, settings: dict[str, int]) -> None:
    for pragma, value in settings.items():
        connection.execute(f"PRAGMA {pragma} = {value}").fetchall()


def migrated_file(path: Path) -> Path:
    """A migrated file without a WAL beside it, to be copied for each test."""
    engine = create_store_engine(f"sqlite:///{path}")
    migrate.upgrade(engine)
    engine.dispose()
    return path


def copy_of(template: Path, path: Path) -> SqliteDatabase:
    """A database of a test's own."""
    shutil.copy(template, path)
    return SqliteDatabase(path)
