"""How an operation gets its connection: a transaction of our own, or the application's.

An operation is a function of a :class:`~batchmill.store.tx.Tx`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol, TypeVar

from sqlalchemy import Connection, Engine, exc
from sqlalchemy.orm import Session

from batchmill.errors import StoreBusy
from batchmill.store.boundaries import (
    bare_transaction,
    join,
    savepoint,
    take_snapshot,
    take_write_lock,
    transaction,
)
from batchmill.store.capabilities import Capabilities
from batchmill.store.failures import taken_meanwhile, translated
from batchmill.store.models import BatchJobRow
from batchmill.store.tx import Compiler, Tx, is_unwatched
from batchmill.store.write_lock import WriteLock

_T = TypeVar("_T")

READ_COMMITTED: Final = "batchmill_read_committed"
"""Marks the engines whose connections are made with that level, and needn't be told each time."""

LONGEST_LOOK: Final = 0.1
"""Seconds between two looks of who waits for SQLite's lock, at the most."""

PATIENCE: Final = 10.0
"""Seconds after which a busy database is reported and not tried again."""


class Transactions(Protocol):
    """Where a repository's operations run."""

    def read(self, operation: Callable[[Tx], _T], *, snapshot: bool = False) -> _T:
        """Run an operation that only reads; with ``snapshot`` all of it at one moment.

        Inside the application's transaction that is up to the transaction.
        """
        ...

    def write(self, operation: Callable[[Tx], _T], *, savepoints: bool = False) -> _T:
        """Run an operation as a whole, or leave no trace of it; say if it sets savepoints."""
        ...

    def let_others_in(self, spent: float) -> None:
        """Between two steps of one call, the last of which took so many seconds: a pause."""
        ...


class OwnTransactions:
    """Each operation in a transaction of its own, tried again while the database is busy."""

    def __init__(self, engine: Engine, compiler: Compiler) -> None:
        self._engine = engine
        self._compiler = compiler
        self._write_lock = WriteLock()

    def read(self, operation: Callable[[Tx], _T], *, snapshot: bool = False) -> _T:
        """See :class:`Transactions`."""
        return _persistently(lambda: _afresh(lambda: self._read_once(operation, snapshot)))

    def write(self, operation: Callable[[Tx], _T], *, savepoints: bool = False) -> _T:
        """See :class:`Transactions`."""
        return _persistently(lambda: _afresh(lambda: self._write_once(operation, savepoints)))

    def let_others_in(self, spent: float) -> None:
        """See :class:`Transactions`.

        Who waits for SQLite's write lock looks for it now and then, up to 100 ms apart, and never
        finds it free where steps follow each other at once: measured, a writer beside a long sweep
        waited for 1.8 s. With pauses of twice the step, two looks of three find it free.
        """
        if self._compiler.can.begins_immediate:
            time.sleep(min(2 * spent, LONGEST_LOOK))

    def _read_once(self, operation: Callable[[Tx], _T], snapshot: bool) -> _T:  # noqa: FBT001
        can = self._compiler.can
        with self._borrowed(needed=not snapshot) as driver:
            if driver is not None:
                return operation(Tx(None, self._compiler, driver))
        with connected(self._engine, can) as connection:
            if not snapshot:
                return operation(Tx(connection, self._compiler, reads=True))
            with transaction(connection, can):
                take_snapshot(connection, can)
                return operation(Tx(connection, self._compiler, ends=True))

    @contextmanager
    def _borrowed(self, *, needed: bool) -> Iterator[Any]:
        """The driver's connection alone, from the pool and back; None where it can't be alone.

        Nor can one that is in a transaction already, as in an autocommit mode that always is.
        """
        if not needed or not is_unwatched(self._engine, self._compiler.can):
            yield None
            return
        pooled = self._engine.raw_connection()
        try:
            driver: Any = pooled.driver_connection
            yield None if driver.in_transaction else driver
        finally:
            pooled.close()

    def _write_once(self, operation: Callable[[Tx], _T], savepoints: bool) -> _T:  # noqa: FBT001
        can = self._compiler.can
        with self._borrowed(needed=not savepoints) as driver:
            if driver is not None:
                with bare_transaction(driver, self._write_lock):
                    return operation(Tx(None, self._compiler, driver))
        with connected(self._engine, can) as connection, transaction(connection, can):
            take_write_lock(connection, can)
            return operation(Tx(connection, self._compiler, ends=not savepoints))


class BoundTransactions:
    """Every operation inside the application's transaction, each behind a savepoint of its own."""

    def __init__(self, within: Connection | Session, compiler: Compiler) -> None:
        self._within = within
        self._compiler = compiler

    def read(self, operation: Callable[[Tx], _T], *, snapshot: bool = False) -> _T:
        """See :class:`Transactions`."""
        del snapshot
        with translated():
            return operation(Tx(self._connection(), self._compiler))

    def write(self, operation: Callable[[Tx], _T], *, savepoints: bool = False) -> _T:
        """See :class:`Transactions`."""
        del savepoints
        with translated():
            connection, can = self._connection(), self._compiler.can
            join(connection, can)
            take_write_lock(connection, can)
            try:
                return self._behind_a_savepoint(connection, operation)
            except exc.DBAPIError as error:
                if not taken_meanwhile(error):
                    raise
            return self._behind_a_savepoint(connection, operation)  # which finds what is there now

    def _behind_a_savepoint(self, connection: Connection, operation: Callable[[Tx], _T]) -> _T:
        with savepoint(connection, self._compiler.can):
            return operation(Tx(connection, self._compiler))

    def let_others_in(self, spent: float) -> None:
        """See :class:`Transactions`; the application's transaction keeps its locks anyway."""

    def _connection(self) -> Connection:
        within = self._within
        if isinstance(within, Connection):
            return within
        return within.connection(bind_arguments={"mapper": BatchJobRow.__mapper__})


def connected(engine: Engine, can: Capabilities) -> Connection:
    """A connection for transactions of our own.

    Where rows are locked, each statement has to see what was committed before it: that is set on
    the connection, since on an engine the application's own option for it would win.
    """
    connection, options = engine.connect(), engine.get_execution_options()
    as_made = options.get("isolation_level") in (None, "READ COMMITTED")
    if not can.row_locks or (options.get(READ_COMMITTED) and as_made):
        return connection
    try:
        return connection.execution_options(isolation_level="READ COMMITTED")
    except BaseException:
        connection.close()
        raise


def _afresh(attempt: Callable[[], _T]) -> _T:
    """Once more where the connection was lost before the commit: nothing had happened yet.

    After a restart of the server the pool is full of connections that are none any more. It drops
    all of them when the first is found out, so that the second try gets a new one; asking each
    before its use would cost a round trip a transaction.
    """
    with translated():
        try:
            return attempt()
        except exc.DBAPIError as error:
            if not error.connection_invalidated or error.statement is None:
                raise
        return attempt()


def _persistently(attempt: Callable[[], _T]) -> _T:
    """Try again while the database is busy, for about ``PATIENCE`` seconds, with jitter."""
    deadline = time.monotonic() + PATIENCE
    pause = 0.005
    while True:
        try:
            return attempt()
        except StoreBusy:
            if time.monotonic() >= deadline:
                raise
        time.sleep(random.uniform(0.5, 1.0) * pause)
        pause = min(pause * 2, 0.5)
