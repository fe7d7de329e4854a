"""The database that a command works on: found, looked at without touching it, then opened.

Only ``run`` and ``demo`` make batchmill's tables, and only where there are no tables at all;
``batchmill db upgrade`` is the explicit way. A mere look creates no file and writes to none.
"""

from __future__ import annotations

import os
import shlex
import sqlite3
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import closing, contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from batchmill.cli.errors import CommandError, UsageError
from batchmill.errors import InvalidInput
from batchmill.store import BatchRepository, create_store_engine, migrate
from batchmill.store.engine import in_memory, parse_url

DEFAULT_URL: Final = "sqlite:///batchmill.db"
URL_VARIABLE: Final = "BATCHMILL_DATABASE_URL"
SCHEMA_VARIABLE: Final = "BATCHMILL_DATABASE_SCHEMA"
_FILES: Final = {"sqlite", "sqlite+pysqlite"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where batchmill's tables are: a database, and on PostgreSQL a schema of it or None."""

    url: str
    schema: str | None = None


class Found(Enum):
    """What is at a database's place."""

    MISSING = "no file"
    EMPTY = "a database without tables"
    OTHER = "a database without batchmill's tables"
    OURS = "a database with batchmill's tables, of whatever version"


@contextmanager
def open_store(place: Place, *, create: bool = False) -> Iterator[BatchRepository]:
    """A store on the database, closed at the end; its tables are of this version.

    With ``create`` a database that is missing or empty gets its tables first. Raises
    ``CommandError``, ``UsageError`` or a ``StoreError``: one line that says what to do.
    """
    with open_engine(place, create=create) as engine:
        migrate.verify(engine, schema=place.schema)
        yield BatchRepository(engine, schema=place.schema)


@contextmanager
def open_engine(place: Place, *, create: bool = False) -> Iterator[Any]:
    """An engine on batchmill's own database, of whatever version; disposed of at the end."""
    found = look_at(place)
    if not create:
        _refuse_without_tables(found, place)
    with _engine(place) as engine:
        if found is Found.OTHER:
            raise CommandError(
                f"{name_of(place)} holds other tables and none of batchmill's: name another "
                f"database, or run {again('db upgrade', place)} to put them side by side"
            )
        if found is not Found.OURS:
            migrate.upgrade(engine, schema=place.schema)
        yield engine


@contextmanager
def open_for_upgrade(place: Place) -> Iterator[Any]:
    """An engine on any database, also on a file that is not there yet."""
    look_at(place)
    with _engine(place) as engine:
        yield engine


def sql_for(place: Place) -> str:
    """The SQL that makes the tables, for this kind of database; connects nowhere."""
    with _options_named():
        return migrate.sql(place.url, schema=place.schema)


@contextmanager
def _engine(place: Place) -> Iterator[Any]:
    with _options_named():
        engine = create_store_engine(place.url)
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def _options_named() -> Iterator[None]:
    """Name in an error the option that the user gave, not the argument that it became."""
    try:
        yield
    except InvalidInput as error:
        field, _, rest = str(error).partition(": ")
        if field not in {"url", "schema"}:
            raise
        raise UsageError(f"--{'db' if field == 'url' else field}: {rest}") from error


def _refuse_without_tables(found: Found, place: Place) -> None:
    name, upgrade = name_of(place), again("db upgrade", place)
    if found is Found.MISSING:
        raise CommandError(
            f"there is no database {name}: name another with --db, or make it with {upgrade}"
        )
    if found is Found.EMPTY:
        raise CommandError(f"{name} is empty: run {upgrade} to make its tables")
    if found is Found.OTHER:
        raise CommandError(f"{name} has none of batchmill's tables: name another, or run {upgrade}")


def look_at(place: Place) -> Found:
    """What is there, without creating or changing anything; raises for what can't be used."""
    with _options_named():
        server = not _is_file(place)
        migrate.check_place(place.url, place.schema)
        if server:
            return _look_at_server(place)
    path = _path_of(place)
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


def _look_at_server(place: Place) -> Found:
    with _engine(place) as engine:
        return _kind_of(migrate.table_names(engine, schema=place.schema))


def _missing(path: Path) -> Found:
    if not path.parent.is_dir():
        raise CommandError(f"there is no folder {path.parent}: make it, or name another file")
    return Found.MISSING


def _tables(path: Path) -> set[str]:
    address = f"file:{quote(str(path.absolute()))}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=30)) as connection:
        rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {str(name) for (name,) in rows}


def _kind_of(tables: AbstractSet[str]) -> Found:
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


def name_of(place: Place) -> str:
    """The file's name, for messages; a server's URL may hold a password and is never shown."""
    if not _is_file(place):
        return "the database" if place.schema is None else f"the schema {place.schema}"
    path = _path_of(place)
    return "in memory" if path is None else str(path)


def again(command: str, place: Place) -> str:
    """A command to type, with the options that it needs to find the same tables.

    A server's URL, which is not shown, is for the user to put in.
    """
    words = ["batchmill", command]
    if place.url != (os.environ.get(URL_VARIABLE) or DEFAULT_URL):
        words += ["--db", shlex.quote(place.url) if _is_file(place) else "URL"]
    if place.schema not in {None, os.environ.get(SCHEMA_VARIABLE)}:
        words += ["--schema", shlex.quote(str(place.schema))]
    return " ".join(words)


def _is_file(place: Place) -> bool:
    """True for SQLite, False for a server; raises ``UsageError`` for what is no URL."""
    if "://" not in place.url:
        raise UsageError(f"--db: must be a URL; for a file, write sqlite:///{place.url}")
    return parse_url(place.url).get_backend_name() == "sqlite"


def _path_of(place: Place) -> Path | None:
    """The file of an SQLite URL, None for one in memory; raises ``UsageError``."""
    address = parse_url(place.url)
    if address.drivername not in _FILES:
        raise UsageError("--db: write a file like sqlite:///file.db, without a driver")
    if in_memory(address):
        return None
    database = address.database or ""
    if database.startswith("file:"):
        raise UsageError("--db: write the file's path plainly, like sqlite:///file.db")
    return Path(database)
