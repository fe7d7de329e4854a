"""The database that a command works on: found, looked at without touching it, then opened.

Only ``run`` and ``demo`` make batchmill's tables, and only in a file that is missing or empty;
``batchmill db upgrade`` is the explicit way. A mere look creates no file and writes to none.
"""

from __future__ import annotations

import os
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from enum import Enum
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from batchmill.cli.errors import CommandError, UsageError
from batchmill.store import BatchRepository, create_store_engine, migrate
from batchmill.store.engine import in_memory, parse_url

DEFAULT_URL: Final = "sqlite:///batchmill.db"
URL_VARIABLE: Final = "BATCHMILL_DATABASE_URL"
_DRIVERS: Final = {"sqlite", "sqlite+pysqlite"}


class Found(Enum):
    """What is at a database's place."""

    MISSING = "no file"
    EMPTY = "a file without tables"
    OTHER = "a database without batchmill's tables"
    OURS = "a database with batchmill's tables, of whatever version"


@contextmanager
def open_store(url: str, *, create: bool = False) -> Iterator[BatchRepository]:
    """A store on the database, closed at the end; its tables are of this version.

    With ``create`` a file that is missing or empty gets its tables first. Raises
    ``CommandError``, ``UsageError`` or ``MigrationError``: one line that says what to do.
    """
    with open_engine(url, create=create) as engine:
        migrate.verify(engine)
        yield BatchRepository(engine)


@contextmanager
def open_engine(url: str, *, create: bool = False) -> Iterator[Any]:
    """An engine on batchmill's own database, of whatever version; disposed of at the end."""
    found = look_at(url)
    if not create:
        _refuse_without_tables(found, url)
    engine = create_store_engine(url)
    try:
        if found is Found.OTHER:
            raise CommandError(
                f"{name_of(url)} holds other tables and none of batchmill's: name another file, "
                f"or run {again('db upgrade', url)} to put them side by side"
            )
        if found is not Found.OURS:
            migrate.upgrade(engine)
        yield engine
    finally:
        engine.dispose()


@contextmanager
def open_for_upgrade(url: str) -> Iterator[Any]:
    """An engine on any SQLite database, also one that is not there yet."""
    look_at(url)
    engine = create_store_engine(url)
    try:
        yield engine
    finally:
        engine.dispose()


def _refuse_without_tables(found: Found, url: str) -> None:
    name, upgrade = name_of(url), again("db upgrade", url)
    if found is Found.MISSING:
        raise CommandError(
            f"there is no database {name}: name another with --db, or make it with {upgrade}"
        )
    if found is Found.EMPTY:
        raise CommandError(f"{name} is empty: run {upgrade} to make its tables")
    if found is Found.OTHER:
        raise CommandError(f"{name} is a database, but has none of batchmill's tables")


def look_at(url: str) -> Found:
    """What is there, without creating or changing anything; raises for what can't be used."""
    path = _path_of(url)
    if path is None:
        return Found.EMPTY
    try:
        if path.is_dir():
            raise CommandError(f"{path} is a directory, not a database")
        if not path.exists():
            return _missing(path)
        if path.stat().st_size == 0:
            return Found.EMPTY
        return _kind_of(_tables(path))
    except sqlite3.Error as error:
        raise _unreadable(path, error) from error
    except OSError as error:
        raise CommandError(f"can't open {path}: {error.strerror}") from error


def _missing(path: Path) -> Found:
    if not path.parent.is_dir():
        raise CommandError(f"there is no folder {path.parent}: make it, or name another file")
    return Found.MISSING


def _tables(path: Path) -> set[str]:
    address = f"file:{quote(str(path.absolute()))}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=30)) as connection:
        rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {str(name) for (name,) in rows}


def _kind_of(tables: set[str]) -> Found:
    if tables & migrate.OUR_TABLES:
        return Found.OURS
    return Found.OTHER if tables else Found.EMPTY


def _unreadable(path: Path, error: sqlite3.Error) -> CommandError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_NOTADB:
        return CommandError(f"{path} is not an SQLite database")
    if code == sqlite3.SQLITE_BUSY:
        return CommandError(f"{path} is locked by another program: try again")
    if code == sqlite3.SQLITE_CORRUPT:
        return CommandError(f"{path} is damaged: restore it from a backup")
    return CommandError(f"{path} can't be read: check its permissions and its folder's")


def name_of(url: str) -> str:
    """The file's name, for messages; a URL may hold a password and is never shown."""
    path = _path_of(url)
    return "in memory" if path is None else str(path)


def again(command: str, url: str) -> str:
    """A command to type, with the ``--db`` that it needs to find the same database."""
    needless = url in {DEFAULT_URL, os.environ.get(URL_VARIABLE)}
    return f"batchmill {command}" if needless else f"batchmill {command} --db {shlex.quote(url)}"


def _path_of(url: str) -> Path | None:
    """The file of an SQLite URL, None for one in memory; raises ``UsageError``."""
    if "://" not in url:
        raise UsageError(f"--db: must be a URL; for a file, write sqlite:///{url}")
    address = parse_url(url)
    if address.drivername not in _DRIVERS:
        raise UsageError(
            f"--db: {address.drivername} databases are not supported by this version; "
            "write it like sqlite:///file.db"
        )
    if in_memory(address):
        return None
    database = address.database or ""
    if database.startswith("file:"):
        raise UsageError("--db: write the file's path plainly, like sqlite:///file.db")
    return Path(database)
