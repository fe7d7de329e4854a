"""Named points around each statement and each commit of an engine, and faults at them.

``before statement``: in place of it. ``after statement``: the database has done it, and the driver
says that it hasn't. ``before commit`` and ``after commit``: likewise around the driver's own
commit, which comes after SQLAlchemy's event of that name. ``before begin`` and ``after begin``:
likewise around a BEGIN that the store sends itself, as it does to SQLite.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from sqlalchemy import Engine, event

from batchmill.store.wire import KEPT, Order, Wire

BEFORE_STATEMENT = "before statement"
AFTER_STATEMENT = "after statement"
BEFORE_COMMIT = "before commit"
AFTER_COMMIT = "after commit"
BEFORE_BEGIN = "before begin"
AFTER_BEGIN = "after begin"
BEFORE_ROLLBACK = "before rollback"
POINTS = (BEFORE_STATEMENT, AFTER_STATEMENT, BEFORE_COMMIT, AFTER_COMMIT)

Listener = Callable[[str, str], None]
"""Gets the point, and the statement's text, empty at a commit; may raise."""


class Points:
    """Tells a listener, in the thread that is at the point, of each point that an engine passes.

    The driver tells, by a cursor of ours, and SQLite's by a connection of ours too: an event of
    SQLAlchemy's would make the store run its statements another way than in the field.
    ``here.connection`` is then the driver's connection that this thread used last; in a pipeline,
    ``after statement`` is when it is sent. Several on one engine are told one after another.
    """

    def __init__(self, engine: Engine) -> None:
        self.listener: Listener | None = None
        self.here = threading.local()
        self._dialect: Any = engine.dialect
        of_engine: list[Points] = engine.__dict__.setdefault("_test_points", [])
        attach = _attach_to_sqlite if engine.dialect.name == "sqlite" else _attach_to_server
        if not of_engine:
            event.listen(engine, "checkout", partial(attach, of_engine))
        of_engine.append(self)
        if engine.dialect.name != "sqlite":
            self._wrap("do_commit", BEFORE_COMMIT, AFTER_COMMIT)
            self._wrap("do_rollback", BEFORE_ROLLBACK, None)

    def tell(self, connection: Any, point: str, statement: str = "") -> None:
        """This thread is at a point."""
        self.here.connection = connection
        if self.listener is not None:
            self.listener(point, statement)

    def _wrap(self, name: str, before: str, after: str | None) -> None:
        original = getattr(self._dialect, name)

        def wrapped(connection: Any) -> None:
            driver = getattr(connection, "driver_connection", connection)
            if is_idle(driver):  # the store has ended it itself
                original(connection)
                return
            self.tell(driver, before)
            original(connection)
            if after is not None:
                self.tell(driver, after)

        setattr(self._dialect, name, wrapped)


def _attach_to_server(points: list[Points], connection: Any, record: Any, *_: object) -> None:
    if hasattr(connection, "pgconn"):
        record.info[KEPT] = _TellingWire(connection, points)
    named = "cursor_factory" if hasattr(connection, "cursor_factory") else "cursorclass"
    theirs = getattr(connection, named)
    if not issubclass(theirs, _Telling):
        setattr(connection, named, type("Cursor", (_Telling, theirs), {"points": points}))


def _attach_to_sqlite(points: list[Points], connection: Any, *_: object) -> None:
    assert isinstance(connection, TellingConnection), "the engine was made without our connections"
    connection.points = points


class _Telling:
    """What a driver's cursor does besides."""

    points: Sequence[Points]
    _inside = threading.local()

    def execute(self, statement: str, *args: Any, **named: Any) -> Any:
        return self._tell("execute", statement, *args, **named)

    def executemany(self, statement: str, *args: Any, **named: Any) -> Any:
        return self._tell("executemany", statement, *args, **named)

    def _tell(self, name: str, statement: str, *args: Any, **named: Any) -> Any:
        """One point for each call of the store's: a driver may make many of one."""
        run, inside = getattr(super(), name), self._inside
        if getattr(inside, "now", False):
            return run(statement, *args, **named)

        def run_inside() -> Any:
            inside.now = True
            try:
                return run(statement, *args, **named)
            finally:
                inside.now = False

        connection = self.connection  # type: ignore[attr-defined]
        return _between_points(self.points, connection, str(statement), run_inside)


def _between_points(
    points: Sequence[Points], connection: Any, statement: str, run: Callable[[], Any]
) -> Any:
    before, after, text = _around(statement)
    for each in points:
        each.tell(connection, before, text)
    answer = run()
    for each in points if after is not None else ():
        each.tell(connection, after, text)
    return answer


def _around(statement: str) -> tuple[str, Any, str]:
    """The points before and after a statement, and the text that goes with them."""
    words = statement.split(None, 2)
    if words[0] == "BEGIN":
        return BEFORE_BEGIN, AFTER_BEGIN, statement
    if words[0] == "COMMIT":
        return BEFORE_COMMIT, AFTER_COMMIT, ""
    if words == ["ROLLBACK"]:  # and not to a savepoint
        return BEFORE_ROLLBACK, None, ""
    return BEFORE_STATEMENT, AFTER_STATEMENT, statement


class _TellingWire(Wire):
    """PostgreSQL's, which sends what it is given one by one, so as to tell in between."""

    def __init__(self, driver: Any, points: Sequence[Points]) -> None:
        super().__init__(driver)
        self._points = points

    def run(
        self, orders: Sequence[Order], *, begin: bool = False, commit: bool = False, alone: bool
    ) -> list[Any]:
        """See ``Wire``."""
        results = []
        for number, order in enumerate(orders):
            send = partial(super().run, [order], begin=begin and not number, alone=alone)
            results += self._between(order.text.decode(), send)
        if commit:
            self._between("COMMIT", partial(super().run, [], commit=True, alone=alone))
        return results

    def _between(self, statement: str, send: Callable[[], Any]) -> Any:
        return _between_points(self._points, self.driver, statement, send)


class _TellingCursor(_Telling, sqlite3.Cursor):
    """SQLite's, of a connection of ours."""

    @property
    def points(self) -> Sequence[Points]:  # type: ignore[override]
        """Those of the connection."""
        return self.connection.points  # type: ignore[attr-defined,no-any-return]


class TellingConnection(sqlite3.Connection):
    """SQLite's, as ``factory`` of an engine that is to have points."""

    points: Sequence[Points] = ()

    def cursor(self, factory: Any = _TellingCursor) -> Any:
        """A cursor that tells."""
        return super().cursor(factory)

    def execute(self, statement: str, *args: Any) -> Any:
        """See ``sqlite3.Connection``, which needn't ask our ``cursor``."""
        if statement == "PRAGMA busy_timeout":
            return super().execute(statement)
        return self.cursor().execute(statement, *args)

    def executescript(self, script: str) -> Any:
        """With a BEGIN in it, it is that."""
        run = partial(super().executescript, script)
        begun = "BEGIN IMMEDIATE" in script
        return _between_points(self.points, self, "BEGIN IMMEDIATE", run) if begun else run()

    def executemany(self, *args: Any) -> Any:
        """See ``execute``."""
        return self.cursor().executemany(*args)

    def commit(self) -> None:
        """As if it were the statement."""
        _between_points(self.points, self, "COMMIT", super().commit)

    def rollback(self) -> None:
        """As if it were the statement."""
        _between_points(self.points, self, "ROLLBACK", super().rollback)


def is_idle(driver: Any) -> bool:
    """Whether a connection of psycopg's is in no transaction."""
    return hasattr(driver, "pgconn") and driver.info.transaction_status == 0


class Counts:
    """How often each point was passed, as a listener."""

    def __init__(self) -> None:
        self.passed: list[tuple[str, str]] = []

    def __call__(self, point: str, statement: str) -> None:
        self.passed.append((point, statement))

    def of(self, point: str) -> int:
        """How often this one."""
        return sum(each == point for each, _ in self.passed)


class Fault:
    """Raises at the ``nth`` passing of a point, counted from 0, once or from then on."""

    def __init__(
        self, point: str, nth: int, make: Callable[[], BaseException], *, lasting: bool = False
    ) -> None:
        self.point, self.nth, self.make, self.lasting = point, nth, make, lasting
        self.passed = 0
        self.raised = 0

    def __call__(self, point: str, _statement: str) -> None:
        if point != self.point:
            return
        due = self.passed == self.nth or (self.lasting and self.passed > self.nth)
        self.passed += 1
        if due:
            self.raised += 1
            raise self.make()


class Outage:
    """Raises at every passing of its points by any thread, until it is over."""

    def __init__(self, points: tuple[str, ...], make: Callable[[], BaseException]) -> None:
        self.points, self.make = points, make
        self.raised = 0
        self._over = False
        self._changed = threading.Condition()

    def __call__(self, point: str, statement: str) -> None:
        if point not in self.points or self._over or statement.startswith("PRAGMA"):
            return
        with self._changed:
            self.raised += 1
            self._changed.notify_all()
        raise self.make()

    def wait_for(self, times: int, patience: float) -> None:
        """Wait until it has raised so many times."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.raised >= times, patience), "never met it"

    def end(self) -> None:
        """From now on the database is well."""
        self._over = True


@contextmanager
def listening(points: Points, listener: Any) -> Iterator[Any]:
    """The listener, told of all points meanwhile."""
    points.listener = listener
    try:
        yield listener
    finally:
        points.listener = None
