"""Two calls that meet in a database, one of them stopped just before its commit.

The first has done everything but the driver's commit, and holds its locks; the second has sent a
statement, and the database doesn't answer. Nothing here sleeps.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Engine

from batchmill.errors import BatchmillError
from tests.support import injection
from tests.support.database import Database, Dump
from tests.support.injection import Points

PATIENCE = 30.0
"""Seconds after which a bounded wait gives up: far more than any of them takes."""
CHANCE = 0.05
"""Seconds in which the second could get on, if nothing made it wait."""

SENT = (injection.BEFORE_BEGIN, injection.BEFORE_STATEMENT)
"""Where it waits for the database, if it has come no further."""


class Side:
    """One of the two: its call runs in a thread of its own, over an engine of its own."""

    def __init__(
        self,
        engine: Engine,
        *,
        stop_at: str = injection.BEFORE_COMMIT,
        fault: BaseException | None = None,
    ) -> None:
        self.passed: list[str] = []
        self.stopped, self.sent, self.ended = (threading.Event() for _ in range(3))
        self.answer: Any = None
        self.error: BaseException | None = None
        self._go_on = threading.Event()
        self._stop_at, self._fault = stop_at, fault
        self._thread: threading.Thread | None = None
        self._points = Points(engine)
        self._points.listener = self._at

    def _at(self, point: str, statement: str) -> None:
        if self._thread is not threading.current_thread():
            return
        self.passed.append(point)
        if point in SENT:
            self.sent.set()
        if point == self._stop_at and not self._go_on.is_set():
            self.stopped.set()
            assert self._go_on.wait(PATIENCE)
            if self._fault is not None:
                raise self._fault

    def start(self, call: Callable[[], Any]) -> Side:
        """Begin the call."""
        self._thread = threading.Thread(target=self._run, args=(call,))
        self._thread.start()
        return self

    def _run(self, call: Callable[[], Any]) -> None:
        try:
            self.answer = call()
        except BaseException as error:
            self.error = error
        self.ended.set()
        self.stopped.set()

    def until_stopped(self) -> None:
        """Wait until it stands before its commit, or has ended without one."""
        assert self.stopped.wait(PATIENCE)

    def waits(self, database: Database) -> bool:
        """It has sent a statement that the database doesn't answer.

        Where the database says who waits for a lock, that is asked for as well.
        """
        assert self.sent.wait(PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while not self.stopped.wait(CHANCE):
            waiting = database.waiting()
            if waiting or (waiting is None and self.passed[-1] in SENT):
                return True
            assert time.monotonic() < deadline, "it neither waits nor goes on"
        return False

    def go_on(self) -> None:
        """Let it commit."""
        self._go_on.set()

    def finish(self) -> Any:
        """Let it commit, and wait for its end; what it returned, or its error raised."""
        self.go_on()
        assert self._thread is not None
        self._thread.join(PATIENCE)
        assert self.ended.is_set()
        if self.error is not None:
            raise self.error
        return self.answer


@dataclass
class Met:
    """What came of it: the answers, and whether the second changed anything that was committed."""

    first: Any
    second: Any
    waited: bool
    row_locks: bool
    before: Dump = field(repr=False)
    after: Dump = field(repr=False)

    @property
    def changed_nothing(self) -> bool:
        """Every row is as the first left it."""
        return self.before == self.after

    def lost(self, *, skips: bool = False) -> bool:
        """The second waited, and changed nothing.

        ``skips``: where each row has its lock it goes on without what is locked, and doesn't wait.
        """
        waits = not (skips and self.row_locks)
        assert self.waited == waits, f"the second did {'not ' * waits}wait for the first"
        assert self.changed_nothing, (self.before, self.after)
        return True


def meet(
    database: Database,
    first: Callable[[Any], Any],
    second: Callable[[Any], Any],
    *,
    fault: BaseException | None = None,
) -> Met:
    """Run ``first(store)`` up to its commit, begin ``second(store)``, and let both commit in turn.

    Each gets a repository of its own. With ``fault`` the first's commit fails with it.
    """
    stores = [database.store(), database.store()]
    one, two = Side(stores[0].engine, fault=fault), Side(stores[1].engine)
    one.start(lambda: first(stores[0])).until_stopped()
    assert not one.ended.is_set(), f"the first never came to a commit: {one.error!r}"
    two.start(lambda: second(stores[1]))
    waited = two.waits(database)
    answer = outcome_of(one.finish)
    two.until_stopped()
    before = database.dump()
    second = outcome_of(two.finish)
    return Met(answer, second, waited, database.row_locks, before, database.dump())


def outcome_of(call: Callable[[], Any]) -> Any:
    """What a call returned, or the error of ours that it raised."""
    try:
        return call()
    except BatchmillError as error:
        return error
