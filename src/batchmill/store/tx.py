"""A transaction as operations see it: statements by their builders, rows as plain tuples.

Statements are compiled once and then run by the driver's own text: measured on SQLite, that halves
the cost of a small transaction against handing the construct to SQLAlchemy each time. Where nobody
watches, the driver runs them by itself; one that has a pipeline sends several in one round trip.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, Final

from sqlalchemy import Connection, Engine, exc

from batchmill.errors import StoreError
from batchmill.store.boundaries import check_encoding
from batchmill.store.calls import Build, Call, Compiler, Params, Row, call, documents
from batchmill.store.capabilities import Capabilities
from batchmill.store.packets import Packets
from batchmill.store.wire import Expected, Wire, wire_of

__all__ = ["SET_BYTES", "Build", "Call", "Compiler", "Row", "Tx", "call", "is_unwatched"]

SET_BYTES: Final = 256 * 1024
"""About how many characters of parameters go into one document: far less than a packet may hold."""


class Tx:
    """One transaction on one connection, as operations see it."""

    __slots__ = (
        "_compiler",
        "_connection",
        "_driver",
        "_ends",
        "_packets",
        "_reads",
        "_wire",
        "can",
        "shard",
    )

    def __init__(
        self,
        connection: Connection | None,
        compiler: Compiler,
        driver: Any = None,
        *,
        reads: bool = False,
        ends: bool = False,
    ) -> None:
        """On a connection of SQLAlchemy's, or on the driver's alone; see :func:`is_unwatched`.

        ``reads``: it only reads, each statement by itself. ``ends``: it may commit; see
        :meth:`conclude`. With neither, it is the application's, or has savepoints.
        """
        self.can = compiler.can
        self._connection = connection
        self.shard = random.randrange(self.can.shards)
        """The one row of the byte total that this transaction adds to."""
        self._compiler = compiler
        self._driver: Any = driver
        self._wire: Wire | None = None
        self._reads, self._ends = reads, ends
        self._packets: Packets | None = None
        if connection is not None:
            self._use(connection)

    def _use(self, connection: Connection) -> None:
        can = self.can
        check_encoding(connection, can)
        driver = _bare_driver(connection, can)
        if driver is not None and can.pipelines:
            self._wire = wire_of(connection.info, driver)
        if self._wire is None:
            self._driver = driver
        if can.packet_limit is not None:
            self._packets = Packets(connection, can.packet_limit)

    @property
    def connection(self) -> Connection:
        """SQLAlchemy's connection, for what the driver's can't do."""
        if self._connection is None:
            raise RuntimeError("this transaction runs on the driver's connection alone")
        return self._connection

    def listed(self, values: Iterable[str | int]) -> Any:
        """A list as one parameter; see :func:`batchmill.store.statements.common.among`."""
        if self.can.lists == "json":
            return json.dumps(list(values))
        return list(values) if self.can.lists == "array" else tuple(values) or ("",)

    def rows(self, build: Build, *variant: Any, **params: Any) -> Sequence[Row]:
        """All rows of a statement, as plain tuples."""
        return self.rows_of(Call(build, variant, params))[0]

    def row(self, build: Build, *variant: Any, **params: Any) -> Row | None:
        """The first row, or None."""
        found = self.rows(build, *variant, **params)
        return found[0] if found else None

    def value(self, build: Build, *variant: Any, **params: Any) -> Any:
        """The first column of the first row, or None."""
        found = self.row(build, *variant, **params)
        return None if found is None else found[0]

    def run(self, build: Build, *variant: Any, **params: Any) -> int:
        """Run a statement that writes; how many rows it touched."""
        return self.run_all(Call(build, variant, params))[0]

    def rows_of(self, *calls: Call) -> list[Sequence[Row]]:
        """All rows of each of several statements, none of which needs another's answer."""
        return self.conclude((), calls, last=False)[1]

    def run_all(self, *calls: Call) -> list[int]:
        """How many rows each of several statements touched that write, in their order."""
        return self.conclude(calls, (), last=False)[0]

    def conclude(
        self, writes: Sequence[Call], reads: Sequence[Call], *, last: bool = True
    ) -> tuple[list[int], list[Sequence[Row]]]:
        """Run what writes, then what reads; how many rows each touched, and all rows of each.

        ``last``: nothing follows, so that where the database takes all in one round trip the
        COMMIT of a transaction of our own goes with it.
        """
        if self._wire is not None:
            return self._conclude_by(self._wire, writes, reads, commit=last and self._ends)
        touched = [int(answer.rowcount) for answer in self._answers(writes)]
        for each, rows in zip(writes, touched, strict=True):
            if each.expected is not None and each.expected.rows != rows:
                raise StoreError(each.expected.otherwise)
        return touched, self._rows(self._answers(reads))

    def _conclude_by(
        self, wire: Wire, writes: Sequence[Call], reads: Sequence[Call], *, commit: bool
    ) -> tuple[list[int], list[Sequence[Row]]]:
        orders = [
            self._compiler.compiled(each.build, each.variant).order(each.params, each.expected)
            for each in (*writes, *reads)
        ]
        if not orders and not commit:
            return [], []
        with self._errors(wire.driver, committing=commit):
            begin = not (self._reads or wire.driver.autocommit or wire.in_transaction)
            results = wire.run(orders, begin=begin, commit=commit, alone=self._reads or self._ends)
        written = zip(orders[: len(writes)], results, strict=False)
        return (
            [wire.touched(order, result) for order, result in written],
            [wire.rows(result) for result in results[len(writes) :]],
        )

    def _rows(self, answers: Sequence[Any]) -> list[Sequence[Row]]:
        rows = []
        try:
            for answer in answers:
                cursor: Any = answer if self._driver is not None else answer.cursor
                rows.append(cursor.fetchall())
        finally:
            for answer in answers:
                answer.close()
        return rows

    def many(
        self, build: Build, rows: Sequence[Params], *, otherwise: str | None = None
    ) -> list[Call]:
        """What runs a statement for each set of parameters: no call for none.

        ``build`` takes one flag as its variant: whether all sets go in at once, as one parameter
        for each column or as one document; see ``statements.common.given``. ``otherwise`` is what
        is wrong where one of them finds no row.
        """
        expected = None if otherwise is None else Expected(len(rows), otherwise)
        if self.can.lists == "json" or len(rows) < 2:
            return [Call(build, (False,), rows, expected)] if rows else []
        if self.can.lists == "array":
            columns = {name: [row[name] for row in rows] for name in rows[0]}
            return [Call(build, (True,), columns, expected)]
        most = SET_BYTES if self._packets is None else self._packets.share(SET_BYTES)
        return [
            Call(build, variant, params, None if otherwise is None else Expected(count, otherwise))
            for variant, params, count in documents(rows, most)
        ]

    def _answers(self, calls: Sequence[Call]) -> list[Any]:
        """What SQLAlchemy answers to each call, or the cursors where the driver runs them."""
        if self._driver is None:
            return [self._run_watched(each) for each in calls]
        if not self.can.lossy:
            return self._run_on_file(calls)
        piped = self._driver.pipeline() if self.can.pipelines else nullcontext()
        with self._errors(self._driver), piped:  # the application's own pipeline
            return [self._run_bare(each, self._driver.cursor()) for each in calls]

    def _run_watched(self, each: Call) -> Any:
        return self.connection.exec_driver_sql(*self._prepared(each))

    def _run_bare(self, each: Call, cursor: Any) -> Any:
        statement, layout = self._prepared(each)
        if isinstance(layout, list):
            cursor.executemany(statement, layout)
        else:
            cursor.execute(statement, layout)
        return cursor

    def _run_on_file(self, calls: Sequence[Call]) -> list[Any]:
        """The driver's cursors, none of which outlives an error.

        Its frames would keep them, as long as it is kept itself, and a read that isn't over keeps
        its snapshot through a ROLLBACK: whoever gets the connection next would read old rows.
        """
        cursors = [self._driver.cursor() for _ in calls]
        try:
            for each, cursor in zip(calls, cursors, strict=True):
                self._run_bare(each, cursor)
        except BaseException:
            for cursor in cursors:
                cursor.close()
            raise
        return cursors

    def _prepared(self, each: Call) -> tuple[str, Any]:
        """Text and parameters, as the driver takes them and the database is known to."""
        compiled = self._compiler.compiled(each.build, each.variant)
        layout = compiled.layout(each.params)
        if self._packets is not None:
            self._packets.check(compiled.text, layout)
        return compiled.text, layout

    @contextmanager
    def _errors(self, driver: Any, *, committing: bool = False) -> Iterator[None]:
        """Raise what a driver raises as SQLAlchemy would, and give up a lost connection as it does.

        Without statement and parameters, which must not get into an error; but an empty one shows
        that it was a statement's, and no commit's.
        """
        dialect: Any = self.connection.dialect
        try:
            yield
        except dialect.loaded_dbapi.Error as error:
            lost = bool(dialect.is_disconnect(error, driver, None))
            if lost:
                self._give_up(error)
            raise exc.DBAPIError.instance(
                None if committing else "",
                None,
                error,
                dialect.loaded_dbapi.Error,
                connection_invalidated=lost,
                dialect=dialect,
            ) from error
        except Exception:
            raise
        except BaseException as error:  # Ctrl-C, say, in the middle of an answer
            self.connection.invalidate(error)
            raise

    def _give_up(self, error: BaseException) -> None:
        """Let SQLAlchemy find the connection lost: it gives up the pool's others of its time too.

        After a restart of the server each of them would be found out by another call that fails.
        """
        with suppress(exc.DBAPIError):
            self.connection.exec_driver_sql("SELECT 1")
        if not self.connection.invalidated:
            self.connection.invalidate(error)


def _bare_driver(connection: Connection, can: Capabilities) -> Any:
    """The driver's connection to run statements on, None where SQLAlchemy has to see each.

    SQLAlchemy's own work for a small statement takes longer than SQLite's (measured). It is left
    out where it does nothing but that: where nobody listens and nothing is echoed.
    """
    watched = getattr(connection, "_echo", True) or getattr(connection, "_has_events", True)
    if watched or not can.bare_statements or _is_listened_to(connection.engine):
        return None
    if not connection.in_transaction():
        connection.begin()  # the driver will have one: whoever ends SQLAlchemy's has to end that
    return connection.connection.driver_connection


def _is_listened_to(engine: Engine) -> bool:
    return any(getattr(each, "_has_events", True) for each in (engine, engine.dialect))


def is_unwatched(engine: Engine, can: Capabilities) -> bool:
    """Whether whole transactions may run on the driver's connection, taken from the pool alone.

    SQLAlchemy's connection around it takes as long as all of the Python in an exchange of one
    target (measured on SQLite), where there is nothing for it to do.
    """
    if can.lossy or not can.bare_statements or _is_listened_to(engine):
        return False
    logs: Any = getattr(engine, "_should_log_info", None)
    return logs is not None and not logs()
