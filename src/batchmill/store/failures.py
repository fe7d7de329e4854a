"""From a driver's error to one of our own, without SQL, parameters or a URL in its text."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy import exc

from batchmill.errors import (
    BatchmillError,
    NotMigrated,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreUnavailable,
)

_BUSY: Final = "the database is locked by another writer; try again"
_FULL: Final = "the database has no room left; free disk space, sweep or evict"
_READ_ONLY: Final = "the database can't be written to; check the file's and folder's permissions"
_FORBIDDEN: Final = "the database refuses this to its user; grant it the rights on its tables"
_GONE: Final = (
    "the database can't be opened or read; check that it is there, reachable, and lets this user in"
)
_NOT_OURS: Final = "this is not a database that batchmill can read; check the file"
_NO_TABLES: Final = (
    "batchmill's tables are missing, in this schema at least, or of another version; "
    "run batchmill.store.migrate.upgrade"
)
_TOO_BIG: Final = "a value is larger than the database takes"
_BROKEN_RULE: Final = "the database refused a row that breaks one of its constraints"
_UNUSABLE: Final = (
    "the connection or session can't be used as it is: it is closed, bound to no database, or "
    "its transaction has failed and must be rolled back first"
)
_OTHER: Final = "the database reported an error"

# By the primary result code, the low byte of SQLite's extended one (sqlite.org/rescode.html).
_BY_CODE: Final[dict[int, tuple[type[StoreError], str]]] = {
    sqlite3.SQLITE_BUSY: (StoreBusy, _BUSY),
    sqlite3.SQLITE_LOCKED: (StoreBusy, _BUSY),
    sqlite3.SQLITE_FULL: (StoreFull, _FULL),
    sqlite3.SQLITE_READONLY: (StoreUnavailable, _READ_ONLY),
    sqlite3.SQLITE_CANTOPEN: (StoreUnavailable, _GONE),
    sqlite3.SQLITE_IOERR: (StoreUnavailable, _GONE),
    sqlite3.SQLITE_CORRUPT: (StoreUnavailable, _NOT_OURS),
    sqlite3.SQLITE_NOTADB: (StoreUnavailable, _NOT_OURS),
    sqlite3.SQLITE_TOOBIG: (StoreError, _TOO_BIG),
    sqlite3.SQLITE_CONSTRAINT: (StoreError, _BROKEN_RULE),
}


# By SQLSTATE, or its class of two characters (postgresql.org/docs/current/errcodes-appendix.html).
_BY_STATE: Final[dict[str, tuple[type[StoreError], str]]] = {
    "40P01": (StoreBusy, _BUSY),
    "40001": (StoreBusy, _BUSY),
    "55P03": (StoreBusy, _BUSY),
    "23505": (StoreBusy, _BUSY),  # somebody was first by a moment: looked at again, it is there
    "53100": (StoreFull, _FULL),
    "XX001": (StoreUnavailable, _GONE),
    "XX002": (StoreUnavailable, _GONE),
    "25006": (StoreUnavailable, _READ_ONLY),
    "42501": (StoreUnavailable, _FORBIDDEN),
    "42P01": (NotMigrated, _NO_TABLES),
    "42703": (NotMigrated, _NO_TABLES),
    "3F000": (NotMigrated, _NO_TABLES),
    "08": (StoreUnavailable, _GONE),
    "28": (StoreUnavailable, _GONE),
    "3D": (StoreUnavailable, _GONE),
    "53": (StoreUnavailable, _GONE),
    "57": (StoreUnavailable, _GONE),
    "58": (StoreUnavailable, _GONE),
    "22": (StoreError, _TOO_BIG),
    "54": (StoreError, _TOO_BIG),
    "23": (StoreError, _BROKEN_RULE),
}
# By MariaDB's error number (mariadb.com/kb/en/mariadb-error-code-reference/).
_BY_NUMBER: Final[dict[int, tuple[type[StoreError], str]]] = {
    **dict.fromkeys((1020, 1062, 1205, 1213), (StoreBusy, _BUSY)),  # 1062: see 23505
    **dict.fromkeys((1021, 1114), (StoreFull, _FULL)),
    **dict.fromkeys((1290, 1792, 1836), (StoreUnavailable, _READ_ONLY)),
    **dict.fromkeys((1142, 1143, 1227, 1370), (StoreUnavailable, _FORBIDDEN)),
    **dict.fromkeys((1054, 1146), (NotMigrated, _NO_TABLES)),
    **dict.fromkeys((1153, 1406, 1264, 1366), (StoreError, _TOO_BIG)),
    **dict.fromkeys((1048, 1451, 1452, 4025), (StoreError, _BROKEN_RULE)),
    **dict.fromkeys((1040, 1044, 1045, 1049, 1053, 1152), (StoreUnavailable, _GONE)),
    **dict.fromkeys((1158, 1159, 1160, 1161), (StoreUnavailable, _GONE)),
    **dict.fromkeys((1927, 2002, 2003, 2006, 2013, 2014, 2055), (StoreUnavailable, _GONE)),
}


class ValueTooLarge(StoreError):
    """A value that this database can't take, found out before anything of it was sent."""


Meaning = tuple[type[StoreError], str]


def translate(error: BaseException) -> StoreError:
    """The error of our tree for what SQLAlchemy or the driver raised; see ``driver_error``."""
    if isinstance(error, exc.TimeoutError):
        return StoreBusy("no database connection became free in time; enlarge the pool")
    if isinstance(error, exc.InvalidRequestError):
        return StoreError(_UNUSABLE)
    driver = driver_error(error)
    of_file = isinstance(driver, sqlite3.Error | OverflowError | ValueError)
    found = _of_sqlite(driver) if of_file else _of_server(error, driver)
    kind, text = found or (StoreError, _OTHER)
    return kind(text)


def _of_sqlite(driver: BaseException) -> Meaning | None:
    """What sqlite3 said, by the result code, or by the text where the code tells nothing."""
    code = getattr(driver, "sqlite_errorcode", None)
    if isinstance(code, int) and code & 0xFF in _BY_CODE:
        return _BY_CODE[code & 0xFF]
    if str(driver).startswith(("no such table: batch_", "no such column: batch_")):
        return NotMigrated, _NO_TABLES
    if isinstance(driver, sqlite3.DataError | OverflowError):
        return StoreError, _TOO_BIG
    if isinstance(driver, ValueError):
        return StoreUnavailable, _NOT_OURS
    return None


def _of_server(error: BaseException, driver: BaseException) -> Meaning | None:
    """What a server said, by PostgreSQL's SQLSTATE or its class, or by MariaDB's error number."""
    state = getattr(driver, "sqlstate", None)
    if isinstance(state, str) and type(driver).__module__.startswith("psycopg"):
        return _BY_STATE.get(state) or _BY_STATE.get(state[:2])
    number = driver.args[0] if driver.args else None
    if isinstance(number, int) and number in _BY_NUMBER:
        return _BY_NUMBER[number]
    lost = isinstance(error, exc.DBAPIError) and error.connection_invalidated
    if lost or isinstance(error, exc.OperationalError | exc.InterfaceError):
        return StoreUnavailable, _GONE
    return None


def driver_error(error: BaseException) -> BaseException:
    """What the driver itself raised: SQLAlchemy's wrapper holds the SQL and its parameters."""
    if isinstance(error, exc.StatementError) and error.orig is not None:
        return error.orig
    return error


def taken_meanwhile(error: BaseException) -> bool:
    """Whether a row was refused whose key somebody else has stored: looked at again, it is there.

    Of a server: where the file has one lock, nobody comes between a look and its row.
    """
    driver = driver_error(error)
    return getattr(driver, "sqlstate", None) == "23505" or driver.args[:1] == (1062,)


DATABASE_ERRORS: Final = (exc.SQLAlchemyError, sqlite3.Error, OverflowError)
"""What a statement may raise: SQLAlchemy's errors, and what a driver raises past it.

sqlite3 raises ``OverflowError``, which SQLAlchemy doesn't take for a driver's error, for a text of
2 GiB.
"""

PASSING: Final = (StoreBusy, StoreUnavailable, StoreFull)
"""Errors that are not about the values: what failed with one may well succeed a little later."""


def _leave_out_quotes(error: exc.StatementError) -> None:
    """Take out of a server's error what it quotes: a line of SQL, a key, a whole row (cases.md S9).

    PostgreSQL has these apart from what it says first; MariaDB puts them between quotes.
    """
    driver = driver_error(error)
    said = getattr(getattr(driver, "diag", None), "message_primary", None)
    if said is not None:
        driver.args = (said,)
    elif len(driver.args) == 2 and isinstance(driver.args[1], str):
        driver.args = (driver.args[0], re.sub("'.*'", "'…'", driver.args[1], flags=re.DOTALL))
    error.args = (f"({type(driver).__name__}) {driver}",)


@contextmanager
def translated() -> Iterator[None]:
    """Turn database errors inside the block into ours, with the driver's as ``__cause__``.

    SQLAlchemy's wrapper around it stays as the context, which a traceback doesn't show; what
    walks contexts all the same finds it, as the driver's, without SQL and parameters. A ValueError
    is a damaged file's: a status that is none, or sqlite3 failing to decode what is wrong with it.
    """
    caught: BaseException | None = None
    try:
        yield
    except BatchmillError:
        raise
    except (*DATABASE_ERRORS, ValueError) as error:
        caught = error
    if caught is not None:
        if isinstance(caught, exc.StatementError):
            caught.statement = caught.params = None
            _leave_out_quotes(caught)
        if isinstance(caught, exc.PendingRollbackError):
            caught.args = (_UNUSABLE,)  # it quotes the application's statement that failed before
        raise translate(caught) from driver_error(caught)
