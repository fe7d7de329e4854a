"""Named points around each statement and each commit of an engine, and faults at them.

``before statement``: in place of it. ``after statement``: the database has done it, and the driver
says that it hasn't. ``before commit`` and ``after commit``: likewise around the driver's own
commit, which comes after SQLAlchemy's event of that name.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, event

BEFORE_STATEMENT = "before statement"
AFTER_STATEMENT = "after statement"
BEFORE_COMMIT = "before commit"
AFTER_COMMIT = "after commit"
BEFORE_ROLLBACK = "before rollback"
POINTS = (BEFORE_STATEMENT, AFTER_STATEMENT, BEFORE_COMMIT, AFTER_COMMIT)

Listener = Callable[[str, str], None]
"""Gets the point, and the statement's text, empty at a commit; may raise."""


class Points:
    """Tells a listener, in the thread that is at the point, of each point that an engine passes.

    A server's driver tells by a cursor of ours: an event of SQLAlchemy's would make the store run
    its statements another way than in the field. ``here.connection`` is then the driver's
    connection that this thread used last; in a pipeline, ``after statement`` is when it is sent.
    """

    def __init__(self, engine: Engine) -> None:
        self.listener: Listener | None = None
        self.here = threading.local()
        self._dialect: Any = engine.dialect
        if engine.dialect.name == "sqlite":
            event.listen(engine, "do_execute", self._executing("execute"))
            event.listen(engine, "do_executemany", self._executing("executemany"))
        else:
            event.listen(engine, "checkout", self._use_our_cursor)
        self._wrap("do_commit", BEFORE_COMMIT, AFTER_COMMIT)
        self._wrap("do_rollback", BEFORE_ROLLBACK, None)

    def _tell(self, point: str, statement: str = "") -> None:
        if self.listener is not None:
            self.listener(point, statement)

    def _executing(self, name: str) -> Callable[..., bool]:
        def execute(cursor: Any, statement: str, parameters: Any, _context: Any) -> bool:
            self._tell(BEFORE_STATEMENT, statement)
            getattr(cursor, name)(statement, parameters)
            self._tell(AFTER_STATEMENT, statement)
            return True  # the dialect need not execute it once more

        return execute

    def _use_our_cursor(self, connection: Any, *_: object) -> None:
        named = "cursor_factory" if hasattr(connection, "cursor_factory") else "cursorclass"
        theirs = getattr(connection, named)
        if not issubclass(theirs, _Telling):
            setattr(connection, named, type("Cursor", (_Telling, theirs), {"points": self}))

    def _wrap(self, name: str, before: str, after: str | None) -> None:
        original = getattr(self._dialect, name)

        def wrapped(connection: Any) -> None:
            self.here.connection = getattr(connection, "driver_connection", connection)
            self._tell(before)
            original(connection)
            if after is not None:
                self._tell(after)

        setattr(self._dialect, name, wrapped)


class _Telling:
    """What a driver's cursor does besides."""

    points: Points

    def execute(self, statement: str, *args: Any, **named: Any) -> Any:
        return self._tell("execute", statement, *args, **named)

    def executemany(self, statement: str, *args: Any, **named: Any) -> Any:
        return self._tell("executemany", statement, *args, **named)

    def _tell(self, name: str, statement: str, *args: Any, **named: Any) -> Any:
        """One point for each call of the store's: a driver may make many of one."""
        points, run = self.points, getattr(super(), name)
        if getattr(points.here, "inside", False):
            return run(statement, *args, **named)
        points.here.connection = self.connection  # type: ignore[attr-defined]
        points._tell(BEFORE_STATEMENT, str(statement))
        points.here.inside = True
        try:
            answer = run(statement, *args, **named)
        finally:
            points.here.inside = False
        points._tell(AFTER_STATEMENT, str(statement))
        return answer


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
