"""Engines that suit a store: what SQLite needs set on each connection, and on its pool.

An engine that the application made itself works too and is left as it is; what it may not be is
checked by :func:`check_engine`.
"""

from __future__ import annotations

import os
import random
import sqlite3
import time
import weakref
from typing import Any, Final, Literal

from sqlalchemy import Engine, create_engine, event, make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.pool import QueuePool, StaticPool

from batchmill.errors import InvalidInput
from batchmill.store.capabilities import capabilities_of_kind
from batchmill.store.links import link_options, watch_links
from batchmill.store.transactions import READ_COMMITTED

Durability = Literal["full", "normal"]

BUSY_TIMEOUT: Final = 30.0
"""Seconds that a connection waits for another writer before it reports a busy database."""

_SYNCHRONOUS: Final[dict[str, str]] = {"full": "FULL", "normal": "NORMAL"}
_DRIVERS: Final = {"postgresql": "postgresql+psycopg", "mariadb": "mariadb+pymysql"}
_EXTRAS: Final = {"psycopg": "postgresql", "pymysql": "mariadb"}


def create_store_engine(
    url: str | URL, *, durability: Durability = "full", **engine_kwargs: Any
) -> Engine:
    """An engine for a store; ``engine_kwargs`` go to SQLAlchemy's ``create_engine``.

    On SQLite every connection gets WAL, a busy timeout of 30 s (``connect_args={"timeout": …}``
    changes it) and foreign keys. ``durability="full"``: what was acknowledged survives a power
    cut; ``"normal"``: it survives the end of the process, and the last commits may be lost with
    the power. A database in memory gets one connection, handed to one thread at a time. After a
    fork the child starts with an empty pool. Bare ``postgresql://`` and ``mariadb://`` URLs mean
    psycopg 3 and PyMySQL. Raises ``InvalidInput``, also for a driver that isn't installed.

    A server that can't be reached is noticed after about 10 s, however long a statement may
    take (TCP keepalives and user timeout), or 5 s when connecting: a call that meets a cut link
    raises after about 15 s, since it tries to connect anew. The server ends a transaction
    that nobody has worked on for 30 s, so that a host that is cut off in one, or frozen, holds no
    locks. The URL's query, ``connect_args``, and for the latter the server's own settings, win.
    """
    if durability not in tuple(_SYNCHRONOUS):  # an odd one may have no hash
        raise InvalidInput("durability: must be 'full' or 'normal'")
    address = parse_url(url)
    if address.get_backend_name() == "sqlite":
        engine = _sqlite_engine(address, durability, engine_kwargs)
    else:
        engine = _server_engine(address, engine_kwargs)
    _forget_after_fork(engine)
    return engine


def _server_engine(address: URL, engine_kwargs: dict[str, Any]) -> Engine:
    """READ COMMITTED from the connect on: a claim must see what was committed before it.

    The application may have another level for its own use of the engine.
    """
    can = capabilities_of_kind(address.get_backend_name())
    options: dict[str, Any] = {"isolation_level": "READ COMMITTED"} | engine_kwargs
    if options["isolation_level"] == "READ COMMITTED":
        options["execution_options"] = dict(options.get("execution_options", {})) | {
            READ_COMMITTED: True
        }
    options["connect_args"] = link_options(address) | dict(options.get("connect_args", {}))
    if can.needs_database and not (address.database or options["connect_args"].get("database")):
        raise InvalidInput("url: names no database; write it like mariadb://host/database")
    try:
        engine = create_engine(address, **options)
    except (ImportError, NoSuchModuleError) as error:
        raise InvalidInput(_without_driver(address)) from error
    watch_links(engine)
    return engine


def _without_driver(address: URL) -> str:
    driver = address.drivername.partition("+")[2]
    if driver not in _EXTRAS:
        return "url: its driver is not supported; write it like postgresql://… or mariadb://…"
    binary = "; where there is no libpq, psycopg[binary] too" if driver == "psycopg" else ""
    return (
        f"url: the driver {driver} is not installed, or can't be loaded; "
        f"run pip install 'batchmill[{_EXTRAS[driver]}]'{binary}"
    )


def parse_url(url: str | URL) -> URL:
    """The URL with our default driver; raises ``InvalidInput``, never showing the URL."""
    try:
        address = make_url(url)
    except (ArgumentError, TypeError, ValueError):
        address = None
    if not isinstance(address, URL):  # SQLAlchemy 2.0 hands back whatever isn't text
        raise InvalidInput("url: is not a database URL; write it like sqlite:///file.db")
    driver = _DRIVERS.get(address.drivername)
    return address.set(drivername=driver) if driver else address


def in_memory(address: URL) -> bool:
    """True when a SQLite URL names no file."""
    database = address.database or ""
    return (
        database in ("", ":memory:")
        or "mode=memory" in database
        or ":memory:" in database
        or address.query.get("mode") == "memory"
    )


def check_engine(engine: Engine) -> None:
    """Refuse pools under which one connection would serve two threads, or each its own memory."""
    pool = engine.pool
    if isinstance(pool, StaticPool):
        raise InvalidInput(
            "engine: StaticPool shares one connection between threads; use create_store_engine"
        )
    if engine.url.get_backend_name() != "sqlite" or not in_memory(engine.url):
        return
    if not isinstance(pool, QueuePool) or (pool.size(), _overflow(pool)) != (1, 0):
        raise InvalidInput(
            f"engine: {type(pool).__name__} on a database in memory gives each connection a "
            "database of its own; use create_store_engine, or a QueuePool of size 1"
        )


def _overflow(pool: QueuePool) -> int:
    """How many connections a pool opens beyond its size, -1 for any number.

    SQLAlchemy has no public name for it.
    """
    return int(getattr(pool, "_max_overflow", 1))


def _sqlite_engine(address: URL, durability: str, engine_kwargs: dict[str, Any]) -> Engine:
    options = dict(engine_kwargs)
    if in_memory(address) and options.setdefault("poolclass", QueuePool) is QueuePool:
        one = {"pool_size": 1, "max_overflow": 0, "pool_timeout": BUSY_TIMEOUT}
        options = one | options
    connect_args = {"timeout": BUSY_TIMEOUT} | dict(options.pop("connect_args", {}))
    if in_memory(address):
        connect_args.setdefault("check_same_thread", False)
    engine = create_engine(address, connect_args=connect_args, **options)
    check_engine(engine)
    level, patience = _SYNCHRONOUS[durability], float(connect_args["timeout"])

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        _prepare_connection(connection, level, patience)

    return engine


def _prepare_connection(connection: Any, level: str, patience: float) -> None:
    """Set up one SQLite connection, whatever its own mode of transactions is.

    With ``autocommit=False`` (Python 3.12) it always is in a transaction, where none of these
    settings takes effect.
    """
    always_in_one = getattr(connection, "autocommit", None) is False
    if always_in_one:
        connection.autocommit = True
    cursor = connection.cursor()
    try:
        _switch_to_wal(cursor, time.monotonic() + patience)
        cursor.execute(f"PRAGMA synchronous = {level}")
        cursor.execute("PRAGMA foreign_keys = ON")
    finally:
        cursor.close()
        if always_in_one:
            connection.autocommit = False


def _switch_to_wal(cursor: Any, deadline: float) -> None:
    """Switch the file to WAL; SQLite's busy timeout does not cover this one (cases.md 14)."""
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
            cursor.fetchall()
            return
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            if not busy or time.monotonic() >= deadline:
                raise
        time.sleep(random.uniform(0.005, 0.05))


def _forget_after_fork(engine: Engine) -> None:
    """Give a forked child a pool of its own: sockets and files must not be shared (cases.md S3).

    The parent's connections are kept from being closed in the child, where closing them could
    disturb the parent.
    """
    reference = weakref.ref(engine)
    kept: list[Any] = []

    def in_child() -> None:
        inherited = reference()
        if inherited is not None:
            kept.append(inherited.pool)
            inherited.dispose(close=False)

    os.register_at_fork(after_in_child=in_child)


__all__ = [
    "BUSY_TIMEOUT",
    "Durability",
    "check_engine",
    "create_store_engine",
    "in_memory",
    "parse_url",
]
