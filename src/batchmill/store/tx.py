"""A transaction as operations see it: statements by their builders, rows as plain tuples.

Statements are compiled once and then run by the driver's own text: measured on SQLite, that halves
the cost of a small transaction against handing the construct to SQLAlchemy each time. Where nobody
watches, the driver runs them by itself; one that has a pipeline sends several in one round trip.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Engine, Executable, exc

from batchmill.store.boundaries import check_encoding
from batchmill.store.capabilities import Capabilities, capabilities_of
from batchmill.store.packets import Packets
from batchmill.store.schemas import check_schema
from batchmill.store.statements.common import GIVEN

Row = tuple[Any, ...]
Params = Mapping[str, Any]
Build = Callable[..., Executable]
"""A function of :mod:`batchmill.store.statements`: from capabilities to a construct."""

SET_BYTES: Final = 256 * 1024
"""About how many characters of parameters go into one document: far less than a packet may hold."""


class Call(NamedTuple):
    """One statement to run: its builder, what picks the variant, and its parameters.

    Several sets of parameters run it once for each.
    """

    build: Build
    variant: tuple[Any, ...]
    params: Params | Sequence[Params]


def call(build: Build, *variant: Any, **params: Any) -> Call:
    """A statement to run together with others."""
    return Call(build, variant, params)


class Compiler:
    """Compiles each statement once for one dialect, and for one schema (None: the default one)."""

    def __init__(self, engine: Engine, schema: str | None = None) -> None:
        self.dialect = engine.dialect
        self.can: Capabilities = capabilities_of(engine.dialect)
        self.schema = check_schema(schema, self.can)
        self._known: dict[tuple[Any, ...], Compiled] = {}

    def compiled(self, build: Build, variant: tuple[Any, ...]) -> Compiled:
        """The statement that ``build(capabilities, *variant)`` returns, ready to run."""
        key = (build, *variant)
        found = self._known.get(key)
        if found is None:
            statement = build(self.can, *variant)
            found = self._known[key] = Compiled(statement, self.dialect, self.schema)
        return found


class Compiled:
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

    def layout(self, params: Params | Sequence[Params]) -> Any:
        """The parameters as the driver takes them: by position, or by name; a list for many."""
        if isinstance(params, Sequence):
            if len(params) > 1:
                return [self._one(each) for each in params]
            (params,) = params
        return self._one(params)

    def _one(self, params: Params) -> Any:
        if self._names is None:
            return {**self._fixed, **params}
        fixed = self._fixed
        return tuple([params[n] if n in params else fixed[n] for n in self._names])


class Tx:
    """One transaction on one connection, as operations see it."""

    __slots__ = ("_begun", "_compiler", "_connection", "_driver", "_packets", "can", "shard")

    def __init__(
        self, connection: Connection | None, compiler: Compiler, driver: Any = None
    ) -> None:
        """On a connection of SQLAlchemy's, or on the driver's alone; see :func:`is_unwatched`."""
        self.can = compiler.can
        self._connection = connection
        self.shard = random.randrange(self.can.shards)
        """The one row of the byte total that this transaction adds to."""
        self._begun = False
        self._compiler = compiler
        self._driver = driver
        self._packets: Packets | None = None
        if connection is not None:
            check_encoding(connection, compiler.can)
            self._driver = _bare_driver(connection, compiler.can)
            if compiler.can.packet_limit is not None:
                self._packets = Packets(connection, compiler.can.packet_limit)

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
        answers, rows = self._answers(calls), []
        try:
            for answer in answers:
                cursor = answer if self._driver is not None else answer.cursor
                rows.append(cursor.fetchall())
        finally:
            for answer in answers:
                answer.close()
        return rows

    def run_all(self, *calls: Call) -> list[int]:
        """How many rows each of several statements touched that write, in their order."""
        return [int(answer.rowcount) for answer in self._answers(calls)]

    def many(self, build: Build, rows: Sequence[Params]) -> list[Call]:
        """What runs a statement for each set of parameters: no call for none.

        ``build`` takes one flag as its variant: whether all sets go in at once, as one parameter
        for each column or as one document; see ``statements.common.given``.
        """
        if self.can.lists == "json" or len(rows) < 2:
            return [Call(build, (False,), rows)] if rows else []
        if self.can.lists == "array":
            columns = {name: [row[name] for row in rows] for name in rows[0]}
            return [Call(build, (True,), columns)]
        most = SET_BYTES if self._packets is None else self._packets.share(SET_BYTES)
        return list(_documents(build, rows, most))

    def _answers(self, calls: Sequence[Call]) -> list[Any]:
        """What SQLAlchemy answers to each call, or the cursors where the driver runs them."""
        if self._driver is None:
            return [self._run_watched(each) for each in calls]
        if not self.can.lossy:
            return self._run_on_file(calls)
        with self._errors(), self._pipeline(calls):
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

    def _pipeline(self, calls: Sequence[Call]) -> AbstractContextManager[Any]:
        """One round trip for all calls, and for the BEGIN that the driver sends before the first.

        For one statement in the middle of a transaction it would cost more than it saves.
        """
        alone, self._begun = self._begun and len(calls) == 1, True
        if alone or not self.can.pipelines:
            return nullcontext()
        return self._driver.pipeline()  # type: ignore[no-any-return]

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise what a driver raises as SQLAlchemy would, and give up a lost connection as it does.

        Without statement and parameters, which must not get into an error; but an empty one shows
        that it was a statement's, and no commit's.
        """
        dialect: Any = self.connection.dialect
        try:
            yield
        except dialect.loaded_dbapi.Error as error:
            lost = bool(dialect.is_disconnect(error, self._driver, None))
            if lost:
                self._give_up(error)
            raise exc.DBAPIError.instance(
                "",
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


def _documents(build: Build, rows: Sequence[Params], most: int) -> Iterator[Call]:
    """Sets of parameters as JSON documents of so many characters; a larger set by itself."""
    part: list[str] = []
    size = 0
    for row in rows:
        document = json.dumps(row, ensure_ascii=False)
        if len(document) > most:
            yield Call(build, (False,), row)
            continue
        if size + len(document) > most:
            yield _document(build, part)
            part, size = [], 0
        part.append(document)
        size += len(document)
    if part:
        yield _document(build, part)


def _document(build: Build, part: Sequence[str]) -> Call:
    return Call(build, (True,), {GIVEN: f"[{','.join(part)}]"})
