"""Where a transaction begins and ends on a connection, whatever mode the connection is in.

SQLAlchemy leaves it to the driver: sqlite3 begins none for a SELECT or for DDL, and in its own
autocommit its commit and rollback do nothing.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import Connection, NestedTransaction
from sqlalchemy.exc import DBAPIError

from batchmill.errors import InvalidInput, StoreBusy, StoreUnavailable
from batchmill.store.capabilities import Capabilities
from batchmill.store.write_lock import WriteLock

_TAKE_WRITE_LOCK: Final = "UPDATE batch_total SET turns = turns WHERE shard = -3"


@contextmanager
def transaction(connection: Connection, can: Capabilities) -> Iterator[None]:
    """A transaction of our own around the block: committed at its end, or nothing is left open.

    A SQLite database that is busy at COMMIT (in rollback-journal mode, when somebody reads) keeps
    the transaction, and SQLAlchemy closes such a connection without a ROLLBACK: the next try, or
    whoever got it from the pool, would go on in it.
    """
    connection.begin()
    try:
        yield
        connection.commit()
        _end_in_driver(connection, can, "COMMIT")
    except BaseException:
        _roll_back(connection, can)
        raise


def _roll_back(connection: Connection, can: Capabilities) -> None:
    """Leave nothing open; a connection that can't even roll back is lost, and all of it with it.

    What is raised is then what went wrong first.
    """
    try:
        connection.rollback()  # only SQLAlchemy's own part, so that the pool resets the connection
        if not connection.invalidated:
            connection.connection.rollback()
            _end_in_driver(connection, can, "ROLLBACK")
    except (DBAPIError, connection.dialect.loaded_dbapi.Error):
        if not can.lossy:
            raise
        connection.invalidate()


@contextmanager
def bare_transaction(driver: Any, lock: WriteLock) -> Iterator[None]:
    """A transaction that writes, on the connection of sqlite3 itself; see ``transaction``.

    An interrupt may come when it has begun: not every pool rolls back what is left open.
    """
    try:
        lock.take(driver)
        yield
        driver.execute("COMMIT")
    except BaseException:
        if driver.in_transaction:
            driver.execute("ROLLBACK")
        raise


@contextmanager
def savepoint(connection: Connection, can: Capabilities) -> Iterator[None]:
    """All of the block or nothing, in a transaction that goes on.

    Out of room, SQLite may roll back the whole transaction by itself, savepoints and all, and so
    does MariaDB to end a deadlock. Then it is over for SQLAlchemy too, so that nothing that follows
    in it is committed without its beginning, and the error is what the database said first.
    """
    nested = connection.begin_nested()
    try:
        yield
        nested.commit()
    except BaseException:
        root = connection.get_transaction()
        if root is not None and (_is_lost(connection, can) or not _rolled_back(nested)):
            root.rollback()
        raise


def _rolled_back(nested: NestedTransaction) -> bool:
    """Roll back to a savepoint; False where the database knows none any more.

    MariaDB gives up the whole transaction, with all its savepoints, to end a deadlock.
    """
    try:
        nested.rollback()
    except DBAPIError:
        return False
    return True


def check_encoding(connection: Connection, can: Capabilities) -> None:
    """Raise ``InvalidInput`` for a connection in whose encoding some texts can't be sent.

    The driver would fail on them, which would look like a database that is away for a while, or
    MariaDB put question marks in their place.
    """
    if can.encoding is None:
        return
    driver = _driver(connection)
    spoken = getattr(driver, "charset", None) or driver.info.encoding  # PyMySQL's, psycopg's
    if spoken != can.encoding:
        raise InvalidInput(
            f"connection: its texts are {spoken}, in which not all can be stored; connect with "
            "charset=utf8mb4 to MariaDB, with client_encoding=utf8 to PostgreSQL"
        )


def join(connection: Connection, can: Capabilities) -> None:
    """Be in a transaction of the application's, begun here if it has begun none yet.

    Raises ``InvalidInput`` for a connection whose statements commit by themselves: what was begun
    on it would be lost, or stay open, when the application, which sees no reason to commit, closes
    it.
    """
    if not connection.in_transaction():
        connection.begin()
    if _commits_itself(_driver(connection), can):
        raise InvalidInput(
            "connection: is in autocommit, so that there is no transaction to join; "
            "use one that is not, or leave the transaction to batchmill"
        )


def _commits_itself(driver: Any, can: Capabilities) -> bool:
    """True when the driver commits each statement: sqlite3, psycopg and PyMySQL name it apart."""
    if can.begins_immediate:
        autocommit = driver.isolation_level is None or getattr(driver, "autocommit", None) is True
        return autocommit and not driver.in_transaction
    asked = getattr(driver, "get_autocommit", None)
    return bool(driver.autocommit if asked is None else asked())


def take_snapshot(connection: Connection, can: Capabilities) -> None:
    """Let every statement from here on see one state of the database.

    A plain pysqlite connection opens no transaction for a SELECT, so each would see its own; so
    it would where each statement sees what was committed before it.
    """
    if can.row_locks:
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    if can.begins_immediate and not _driver(connection).in_transaction:
        connection.exec_driver_sql("BEGIN")


def begin_immediate(connection: Connection, can: Capabilities) -> bool:
    """Begin a transaction as one that writes; False where one was begun already.

    A plain pysqlite connection begins none for a SELECT, for ``WITH … UPDATE`` or for DDL, so
    that two upgrades would interleave (cases.md 18).
    """
    if not can.begins_immediate or _driver(connection).in_transaction:
        return False
    connection.exec_driver_sql("BEGIN IMMEDIATE")
    return True


@contextmanager
def alone(connection: Connection, can: Capabilities, patience: float) -> Iterator[None]:
    """Let no other migration of this database begin before the block has ended (cases.md 18).

    On SQLite that is the write lock. A server locks a name: to the end of the transaction, or to
    the end of the block where the lock is a session's. Raises ``StoreBusy`` when another still
    has it after ``patience`` seconds.
    """
    begin_immediate(connection, can)
    if can.named_lock is not None:
        _take_name(connection, can.named_lock, patience)
    try:
        yield
    finally:
        if can.named_unlock is not None and not connection.invalidated:
            connection.exec_driver_sql(can.named_unlock)


def _take_name(connection: Connection, named_lock: str, patience: float) -> None:
    """Try until it is ours.

    A wait inside the server would have no bound of ours, or end in an error that ends the
    application's transaction with it.
    """
    deadline = time.monotonic() + patience
    while not (taken := connection.exec_driver_sql(named_lock).scalar()):
        if taken is None:
            raise StoreUnavailable("the database gave no lock for the upgrade; see its log")
        if time.monotonic() >= deadline:
            raise StoreBusy(
                "another upgrade of this database has not ended; see what holds it up, try again"
            )
        time.sleep(random.uniform(0.01, 0.1))


@contextmanager
def waiting_shortly(connection: Connection, can: Capabilities) -> Iterator[None]:
    """Let no statement of the block wait long for a table that somebody else uses.

    DDL that waits for one reader makes all that come after it wait too.
    """
    if can.short_waits is not None:
        connection.exec_driver_sql(can.short_waits)
    try:
        yield
    finally:
        if can.usual_waits is not None and not connection.invalidated:
            connection.exec_driver_sql(can.usual_waits)


def take_write_lock(connection: Connection, can: Capabilities) -> None:
    """Make sure that the transaction may write before anything is read in it.

    A SQLite transaction that begins with a read and then writes fails at once, whatever the busy
    timeout, when another writer came between (cases.md 1). Where one is open already, begun by
    the application or by its event, a write that touches no row takes the lock.
    """
    if can.begins_immediate and not begin_immediate(connection, can):
        connection.exec_driver_sql(_TAKE_WRITE_LOCK)


def _end_in_driver(connection: Connection, can: Capabilities, how: str) -> None:
    """End what the driver left open, in its own autocommit or where SQLAlchemy skips a rollback.

    With ``autocommit=False`` there always is a transaction: the next one.
    """
    if not can.begins_immediate:
        return
    driver = _driver(connection)
    if driver.in_transaction and getattr(driver, "autocommit", None) is not False:
        driver.execute(how)


def _is_lost(connection: Connection, can: Capabilities) -> bool:
    """True when the database has ended the transaction that was begun on the connection."""
    if connection.invalidated or not can.begins_immediate:
        return connection.invalidated
    return not _driver(connection).in_transaction


def _driver(connection: Connection) -> Any:
    return connection.connection.driver_connection
