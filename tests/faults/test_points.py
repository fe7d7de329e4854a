"""Each write of a store with a fault at each of its statements and commits in turn.

After it the rows are as before, or as after the whole write, never anything between; and once
the fault is gone the same call does the whole of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Engine, event

from batchmill.errors import BatchmillError, StoreError
from batchmill.store import BatchRepository, transactions
from batchmill.store.operations import removing
from tests.faults.operations import WRITES, Call, prepared
from tests.support import injection
from tests.support.database import Database, Dump
from tests.support.fixtures import on_servers_for_long, on_sqlite
from tests.support.injection import (
    AFTER_BEGIN,
    AFTER_COMMIT,
    AFTER_STATEMENT,
    BEFORE_BEGIN,
    BEFORE_COMMIT,
    BEFORE_ROLLBACK,
    BEFORE_STATEMENT,
    Counts,
    Fault,
    Points,
    listening,
)
from tests.support.invariants import broken

KINDS = pytest.mark.parametrize(
    "kinds",
    [
        pytest.param(("busy", "full", "other"), id="short"),
        pytest.param(("read-only", "input/output", "corrupt"), id="more", marks=pytest.mark.soak),
    ],
)
EVERY_WRITE = pytest.mark.parametrize("name", WRITES)
BOTH_WAYS = pytest.mark.parametrize(
    "watched", [False, True], ids=["driver-alone", "through-sqlalchemy"]
)
BOTH_WAYS_FOR_LONG = pytest.mark.parametrize(
    "watched",
    [
        pytest.param(False, id="driver-alone"),
        pytest.param(True, id="through-sqlalchemy", marks=pytest.mark.soak),
    ],
)
AT_STATEMENTS = (BEFORE_BEGIN, AFTER_BEGIN, BEFORE_STATEMENT, AFTER_STATEMENT)


@dataclass
class Bench:
    """One write on prepared rows, which are put back before each try."""

    database: Database
    store: BatchRepository
    points: Points
    call: Call
    start: Any
    before: Dump
    after: Dump
    counts: Counts
    odd: set[str]
    """Rules that the whole write breaks by itself: a job made by hand may hold any counters."""
    steps: bool

    def attempt(self, fault: Any) -> BaseException | None:
        """Make the call from the prepared rows with this fault; the error that came out."""
        self.database.restore(self.start)
        with listening(self.points, fault):
            try:
                self.call(self.store)
            except BaseException as error:
                return error.with_traceback(None)  # its frames would keep the driver's cursor
        return None

    def check(self, where: object) -> Dump:
        """Nothing is half-stored, no connection is out, nobody has the file locked; the rows."""
        assert self.store.engine.pool.checkedout() == 0, where  # type: ignore[attr-defined]
        with self.database.writing():
            pass
        assert set(broken(self.database, submitted=False)) <= self.odd, where
        rows = self.database.dump()
        whole = rows in (self.before, self.after)
        assert whole or (self.steps and self._between(rows)), (where, self.before, rows)
        return rows

    def _between(self, rows: Dump) -> bool:
        """Some of the jobs that go are gone; the rest is as it was."""
        jobs = {row[0] for row in rows["batch_job"]}
        before = {row[0] for row in self.before["batch_job"]}
        return {row[0] for row in self.after["batch_job"]} <= jobs <= before

    def again(self, where: object) -> None:
        """The same call, now that the fault is gone, does the whole of it."""
        self.call(self.store)
        assert self.check(where) == self.after, where


@pytest.fixture
def bench(database: Database, name: str, watched: bool, monkeypatch) -> Bench:
    """One of the writes, after it was done once without a fault, the way that is asked for."""
    monkeypatch.setattr(transactions.time, "sleep", lambda _seconds: None)
    monkeypatch.setattr(removing, "STEP_JOBS", 2)
    store = database.store()
    if watched:
        event.listen(store.engine, "before_cursor_execute", lambda *_: None)
    call = prepared(store, name)
    connections = connections_of(store.engine, monkeypatch)
    start, before, points = database.snapshot(), database.dump(), Points(store.engine)
    with listening(points, Counts()) as counts:
        call(store)
    after, odd = database.dump(), set(broken(database, submitted=False))
    assert before != after
    assert bool(connections) == (watched or database.kind != "sqlite")
    assert not odd or name == "create_job"
    steps = WRITES[name].steps
    return Bench(database, store, points, call, start, before, after, counts, odd, steps)


def connections_of(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for each connection of SQLAlchemy's that is made from now on."""
    made, connect = [], engine.connect

    def counted() -> Any:
        made.append("one")
        return connect()

    monkeypatch.setattr(engine, "connect", counted)
    return made


@on_sqlite
@BOTH_WAYS
@EVERY_WRITE
@KINDS
def test_an_error_at_a_statement(bench: Bench, kinds: tuple[str, ...]) -> None:
    """A driver's error before or after any statement: done after all, or our error and no trace."""
    for kind in kinds:
        for point in AT_STATEMENTS:
            for nth in range(bench.counts.of(point)):
                meet_once(bench, kind, point, nth)


@on_sqlite
@BOTH_WAYS
@EVERY_WRITE
@KINDS
def test_an_error_in_place_of_a_commit(bench: Bench, kinds: tuple[str, ...]) -> None:
    """A commit that fails is tried again, or our error comes out and nothing is stored."""
    for kind in kinds:
        for nth in range(bench.counts.of(BEFORE_COMMIT)):
            meet_once(bench, kind, BEFORE_COMMIT, nth)


def meet_once(bench: Bench, kind: str, point: str, nth: int) -> None:
    where, expected = (kind, point, nth), bench.database.faults[kind]
    fault = Fault(point, nth, lambda: bench.database.fault(kind))
    error = bench.attempt(fault)
    assert fault.raised == 1, where
    rows = bench.check(where)
    if error is None:
        assert rows == bench.after, where
        return
    assert expected is not None, (where, error)
    assert type(error) is expected, (where, error)
    if not bench.steps:
        assert rows == bench.before, where
    bench.again(where)


@on_sqlite
@BOTH_WAYS
@EVERY_WRITE
def test_an_error_after_a_commit(bench: Bench) -> None:
    """A commit whose answer is lost has stored all of it, though the call raises."""
    for nth in range(bench.counts.of(AFTER_COMMIT)):
        fault = Fault(AFTER_COMMIT, nth, lambda: bench.database.fault("input/output"))
        error = bench.attempt(fault)
        assert isinstance(error, StoreError)
        rows = bench.check(nth)
        assert rows == bench.after or bench.steps


OTHER_TREES = (KeyboardInterrupt, RuntimeError, OverflowError)


@on_sqlite
@BOTH_WAYS_FOR_LONG
@EVERY_WRITE
def test_an_exception_of_another_tree(bench: Bench) -> None:
    """Ctrl-C, or an error in code around the driver, leaves no trace either."""
    for kind in OTHER_TREES:
        for point in (*AT_STATEMENTS, BEFORE_COMMIT):
            for nth in range(bench.counts.of(point)):
                where = (kind, point, nth)
                error = bench.attempt(Fault(point, nth, partial(kind, "not for anybody's eyes")))
                rows = bench.check(where)
                if error is None:  # the members of the set were stored one by one
                    assert kind is OverflowError, where
                    assert rows == bench.after, where
                    continue
                assert rows == bench.before or bench.steps, where
                bench.again(where)


@on_sqlite
@BOTH_WAYS_FOR_LONG
@EVERY_WRITE
def test_an_error_that_lasts(bench: Bench) -> None:
    """From some statement on nothing works any more: our error, and what is stored is whole."""
    for kind in ("full", "other"):
        make = partial(bench.database.fault, kind)
        for nth in range(bench.counts.of(BEFORE_STATEMENT)):
            error = bench.attempt(Fault(BEFORE_STATEMENT, nth, make, lasting=True))
            assert type(error) is bench.database.faults[kind], (kind, nth, error)
            if bench.check((kind, nth)) == bench.before:
                bench.again((kind, nth))


@on_sqlite
@BOTH_WAYS_FOR_LONG
@EVERY_WRITE
def test_a_rollback_that_fails_too(bench: Bench) -> None:
    """The connection is given up, and with it what it had done."""

    class Broken(Fault):
        def __call__(self, point: str, statement: str) -> None:
            if point == BEFORE_ROLLBACK and self.raised:
                raise bench.database.fault("input/output")
            super().__call__(point, statement)

    for nth in range(bench.counts.of(AFTER_STATEMENT)):
        error = bench.attempt(Broken(AFTER_STATEMENT, nth, lambda: bench.database.fault("full")))
        assert isinstance(error, BatchmillError), (nth, error)
        if bench.check(nth) == bench.before:
            bench.again(nth)


def test_every_write_of_the_surface_is_here() -> None:
    """A method that opens a write transaction is one of those above."""
    named = {name.split()[0] for name in WRITES}
    public = {name for name in vars(BatchRepository) if not name.startswith("_")}
    public |= {name for name in vars(BatchRepository.__mro__[1]) if not name.startswith("_")}
    reads = {
        "bound_to",
        "find_job_by_idem_key",
        "count_live_jobs",
        "get_targets",
        "nbytes",
        "stats",
        "list_jobs",
        "now",
        "subscribe",
    }
    assert public - reads == named


@on_servers_for_long
def test_the_points_are_where_they_are_said_to_be(database: Database) -> None:
    """A submit passes each point in its order, the driver's commit last."""
    store = database.store()
    points = Points(store.engine)
    with listening(points, Counts()) as counts:
        prepared(store, "submit_job")(store)
    passed = [point for point, _ in counts.passed]
    begun = [BEFORE_BEGIN, AFTER_BEGIN] if database.kind == "sqlite" else []
    assert passed[: len(begun)] == begun
    kinds = [point for point in passed if point in injection.POINTS]
    assert kinds[-2:] == [BEFORE_COMMIT, AFTER_COMMIT]
    assert kinds[:2] == [BEFORE_STATEMENT, AFTER_STATEMENT]
    assert set(kinds) == set(injection.POINTS)


@on_sqlite
def test_a_begin_that_is_interrupted_after_it(database: Database) -> None:
    """The lock is given back, whether or not the application's pool resets its connections."""
    store = database.store(pool_reset_on_return=None)
    interrupted = Fault(AFTER_BEGIN, 0, KeyboardInterrupt)
    with listening(Points(store.engine), interrupted), pytest.raises(KeyboardInterrupt):
        prepared(store, "submit_job")(store)
    with database.writing() as run:
        assert run("SELECT count(*) FROM batch_job WHERE id = 'a'").fetchone() == (0,)
