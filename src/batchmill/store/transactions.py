"""How an operation gets its connection: a transaction of our own, or the application's.

An operation is a function of a :class:`Tx`. Statements are compiled once and then run by the
driver's own text: measured on SQLite, that halves the cost of a small transaction against handing
the construct to SQLAlchemy each time, and where nobody watches, the driver runs them by itself.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

from sqlalchemy import Connection, Engine, Executable
from sqlalchemy.orm import Session

from batchmill.errors import StoreBusy
from batchmill.store.boundaries import (
    join,
    savepoint,
    take_snapshot,
    take_write_lock,
    transaction,
)
from batchmill.store.capabilities import Capabilities, capabilities_of
from batchmill.store.failures import translated
from batchmill.store.models import BatchJobRow

_T = TypeVar("_T")
Row = tuple[Any, ...]
Params = Mapping[str, Any]
Build = Callable[..., Executable]
"""A function of :mod:`batchmill.store.statements`: from capabilities to a construct."""

READ_COMMITTED: Final = "batchmill_read_committed"
"""Marks the engines whose connections are made with that level, and needn't be told each time."""

PATIENCE: Final = 10.0
"""Seconds after which a busy database is reported and not tried again."""


class Compiler:
    """Compiles each statement once for one dialect, and for one schema (None: the default one)."""

    def __init__(self, engine: Engine, schema: str | None = None) -> None:
        self.dialect = engine.dialect
        self.schema = schema
        self.can: Capabilities = capabilities_of(engine.dialect)
        self._known: dict[tuple[Any, ...], _Compiled] = {}

    def compiled(self, build: Build, variant: tuple[Any, ...]) -> _Compiled:
        """The statement that ``build(capabilities, *variant)`` returns, ready to run."""
        key = (build, *variant)
        found = self._known.get(key)
        if found is None:
            statement = build(self.can, *variant)
            found = self._known[key] = _Compiled(statement, self.dialect, self.schema)
        return found


class _Compiled:
    """A statement's text and how its parameters are laid out for the driver."""

    __slots__ = ("_fixed", "_names", "text")

    def __init__(self, statement: Executable, dialect: Any, schema: str | None) -> None:
        moved = {"schema_translate_map": {None: schema}, "render_schema_translate": True}
        compiled: Any = statement.compile(  # type: ignore[attr-defined]
            dialect=dialect, **({} if schema is None else moved)
        )
        self.text = str(compiled)
        self._names: tuple[str, ...] | None = (
            tuple(compiled.positiontup or ()) if compiled.positional else None
        )
        self._fixed: dict[str, Any] = {
            name: value for name, value in compiled.params.items() if value is not None
        }

    def layout(self, params: Params) -> Any:
        """The parameters as the driver takes them: by position, or by name."""
        if self._names is None:
            return {**self._fixed, **params}
        fixed = self._fixed
        return tuple([params[n] if n in params else fixed[n] for n in self._names])


class Tx:
    """One transaction on one connection, as operations see it."""

    __slots__ = ("_compiler", "_driver", "can", "connection", "shard")

    def __init__(self, connection: Connection, compiler: Compiler) -> None:
        self.connection = connection
        self.can = compiler.can
        self.shard = random.randrange(self.can.shards)
        """The one row of the byte total that this transaction adds to."""
        self._compiler = compiler
        self._driver = _bare_driver(connection, compiler.can)

    def listed(self, values: Iterable[str | int]) -> Any:
        """A list as one parameter; see :func:`batchmill.store.statements.common.among`."""
        if self.can.lists == "json":
            return json.dumps(list(values))
        return list(values) if self.can.lists == "array" else tuple(values) or ("",)

    def rows(self, build: Build, *variant: Any, **params: Any) -> Sequence[Row]:
        """All rows of a statement, as plain tuples."""
        done = self._execute(build, variant, params)
        try:
            cursor = done if self._driver is not None else done.cursor
            return cursor.fetchall()  # type: ignore[no-any-return]
        finally:
            done.close()

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
        return int(self._execute(build, variant, params).rowcount)

    def run_many(self, build: Build, rows: Sequence[Params]) -> int:
        """Run a statement once for each set of parameters; how many rows all of them touched."""
        if not rows:
            return 0
        compiled = self._compiler.compiled(build, ())
        layouts = [compiled.layout(params) for params in rows]
        many = layouts if len(layouts) > 1 else layouts[0]
        if self._driver is None:
            return self.connection.exec_driver_sql(compiled.text, many).rowcount
        run = self._driver.execute if many is layouts[0] else self._driver.executemany
        return int(run(compiled.text, many).rowcount)

    def _execute(self, build: Build, variant: tuple[Any, ...], params: Params) -> Any:
        """The driver's cursor, or SQLAlchemy's result around one."""
        compiled = self._compiler.compiled(build, variant)
        layout = compiled.layout(params)
        if self._driver is not None:
            return self._driver.execute(compiled.text, layout)
        return self.connection.exec_driver_sql(compiled.text, layout)


def _bare_driver(connection: Connection, can: Capabilities) -> Any:
    """The driver's connection to run statements on, None where SQLAlchemy has to see each.

    SQLAlchemy's own work for a small statement takes longer than SQLite's (measured). It is left
    out where it does nothing but that: where nobody listens, nothing is echoed, and no connection
    can be lost.
    """
    if not can.bare_statements or getattr(connection, "_echo", True):
        return None
    listened_to = (connection, connection.engine, connection.dialect)
    if any(getattr(each, "_has_events", True) for each in listened_to):
        return None
    return connection.connection.driver_connection


class Transactions(Protocol):
    """Where a repository's operations run."""

    def read(self, operation: Callable[[Tx], _T], *, snapshot: bool = False) -> _T:
        """Run an operation that only reads; with ``snapshot`` all of it at one moment.

        Inside the application's transaction that is up to the transaction.
        """
        ...

    def write(self, operation: Callable[[Tx], _T]) -> _T:
        """Run an operation as a whole, or leave no trace of it."""
        ...


class OwnTransactions:
    """Each operation in a transaction of its own, tried again while the database is busy."""

    def __init__(self, engine: Engine, compiler: Compiler) -> None:
        self._engine = read_committed(engine, compiler.can)
        self._compiler = compiler

    def read(self, operation: Callable[[Tx], _T], *, snapshot: bool = False) -> _T:
        """See :class:`Transactions`."""
        return _persistently(lambda: self._read_once(operation, snapshot))

    def write(self, operation: Callable[[Tx], _T]) -> _T:
        """See :class:`Transactions`."""
        return _persistently(lambda: self._write_once(operation))

    def _read_once(self, operation: Callable[[Tx], _T], snapshot: bool) -> _T:  # noqa: FBT001
        can = self._compiler.can
        with translated(), self._engine.connect() as connection:
            if not snapshot:
                return operation(Tx(connection, self._compiler))
            with transaction(connection, can):
                take_snapshot(connection, can)
                return operation(Tx(connection, self._compiler))

    def _write_once(self, operation: Callable[[Tx], _T]) -> _T:
        can = self._compiler.can
        with translated(), self._engine.connect() as connection, transaction(connection, can):
            take_write_lock(connection, can)
            return operation(Tx(connection, self._compiler))


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

    def write(self, operation: Callable[[Tx], _T]) -> _T:
        """See :class:`Transactions`."""
        with translated():
            connection, can = self._connection(), self._compiler.can
            join(connection, can)
            take_write_lock(connection, can)
            with savepoint(connection, can):
                return operation(Tx(connection, self._compiler))

    def _connection(self) -> Connection:
        within = self._within
        if isinstance(within, Connection):
            return within
        return within.connection(bind_arguments={"mapper": BatchJobRow.__mapper__})


def read_committed(engine: Engine, can: Capabilities) -> Engine:
    """Where rows are locked, each statement has to see what was committed before it."""
    if not can.row_locks or engine.get_execution_options().get(READ_COMMITTED):
        return engine
    return engine.execution_options(isolation_level="READ COMMITTED")


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
