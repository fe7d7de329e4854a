"""Faults of a server: an error that passes, a connection that is lost, an answer that is lost.

Whatever it is, and at whichever statement or commit: the rows are as before or as after the whole
write. What passes is tried again inside; what may have been committed never is.
"""

from __future__ import annotations

import threading
from contextlib import suppress

import psycopg
import pymysql
import pytest
from sqlalchemy import create_engine

from batchmill.errors import JobExists, StoreBusy, StoreError, StoreUnavailable
from batchmill.store import BatchRepository
from batchmill.store.engine import parse_url
from batchmill.store.failures import translate
from tests.faults.test_points import Bench, bench, meet_once
from tests.store.support import done, exchange, job, submit, targets
from tests.support.fixtures import on_servers
from tests.support.injection import (
    AFTER_COMMIT,
    AFTER_STATEMENT,
    BEFORE_COMMIT,
    BEFORE_STATEMENT,
    Fault,
    Points,
    listening,
)
from tests.support.interleave import PATIENCE
from tests.support.invariants import broken
from tests.support.server_database import run_on

__all__ = ["bench"]

SHORT = ["submit_job with a home", "exchange of three results"]
LONG = [
    "exchange over the budget",
    "release_lost for the last time",
    "sweep in steps",
    "create_job",
    "put_targets",
    "update_target that settles",
    "cancel_job in flight",
    "mark_in_flight_failed",
    "delete_job",
    "submit_job",
    "submit_job again",
    "exchange that claims",
    "exchange of the last result",
    "exchange of a retry",
    "hold of a local runner",
    "release_lost of a lost home",
    "evict_oldest in steps",
]
SOME_WRITES = pytest.mark.parametrize(
    "name", [*SHORT, *(pytest.param(name, marks=pytest.mark.soak) for name in LONG)]
)


class RollsBack(Fault):
    """An error with which the server has rolled the whole transaction back, as in a deadlock."""

    def __init__(self, points: Points, *args) -> None:
        super().__init__(*args)
        self._points = points

    def __call__(self, point: str, statement: str) -> None:
        try:
            super().__call__(point, statement)
        except BaseException:
            with suppress(Exception):  # in a pipeline that it ends
                self._points.here.connection.rollback()
            raise


@on_servers
@SOME_WRITES
def test_an_error_that_passes_is_tried_again(bench: Bench) -> None:
    """A deadlock, a lock timeout, a conflict, anywhere before a commit: all of it is done after."""
    passing = [kind for kind, ours in bench.database.faults.items() if ours is None]
    for kind in passing:
        for point in (BEFORE_STATEMENT, BEFORE_COMMIT):
            for nth in range(bench.counts.of(point)):
                arguments = (point, nth, lambda kind=kind: bench.database.fault(kind))
                whole = RollsBack(bench.points, *arguments) if kind == "busy" else Fault(*arguments)
                assert bench.attempt(whole) is None, (kind, point, nth)
                assert whole.raised == 1
                assert bench.check((kind, point, nth)) == bench.after


@on_servers
@SOME_WRITES
def test_an_error_that_does_not_pass(bench: Bench) -> None:
    """A full disk, or what nobody expects: our error and no trace, or done in another way."""
    for kind in ("full", "other"):
        for point in (BEFORE_STATEMENT, BEFORE_COMMIT):
            for nth in range(bench.counts.of(point)):
                meet_once(bench, kind, point, nth)


class Cut:
    """Has the server end the connection at the nth passing of a point.

    ``unheard``: the driver never gets the answer to what it sent last.
    """

    def __init__(self, bench: Bench, point: str, nth: int, *, unheard: bool = False) -> None:
        self._bench, self._left = bench, nth
        self._point, self._unheard = point, unheard
        self.cut = False

    def __call__(self, point: str, _statement: str) -> None:
        if point != self._point or self.cut:
            return
        self._left -= 1
        if self._left >= 0:
            return
        self.cut = True
        connection = self._bench.points.here.connection
        self._bench.database.end_connection(connection)  # type: ignore[attr-defined]
        if self._unheard:
            run_on(connection, "SELECT 1")  # which finds out that it is gone


@on_servers
@SOME_WRITES
def test_a_connection_that_is_lost_before_its_commit(bench: Bench) -> None:
    """Done after all on a new connection, or StoreUnavailable and no trace of it."""
    for point in (BEFORE_STATEMENT, AFTER_STATEMENT, BEFORE_COMMIT):
        for nth in range(bench.counts.of(point)):
            cut = Cut(bench, point, nth)
            error = bench.attempt(cut)
            assert cut.cut, (point, nth)
            rows = bench.check((point, nth))
            if error is None:
                assert rows == bench.after, (point, nth)
                continue
            assert type(error) is StoreUnavailable, (point, nth, error)
            assert bench.steps or rows == bench.before, (point, nth)
            bench.again((point, nth))


@on_servers
@SOME_WRITES
def test_a_commit_whose_answer_is_lost(bench: Bench) -> None:
    """All of it is stored, once; it isn't tried again, and StoreUnavailable says so."""
    for nth in range(bench.counts.of(AFTER_COMMIT)):
        error = bench.attempt(Cut(bench, AFTER_COMMIT, nth, unheard=True))
        assert type(error) is StoreUnavailable or (error is None and bench.steps), (nth, error)
        rows = bench.check(nth)
        assert bench.steps or rows == bench.after, nth


@on_servers
def test_a_job_whose_commit_is_not_answered_is_made_once(database, store):
    """create_job never answers JobExists for what it has just made itself."""
    points = Points(store.engine)
    fault = Fault(AFTER_COMMIT, 0, lambda: database.fault("input/output"))
    with listening(points, fault), pytest.raises(StoreUnavailable):
        store.create_job(job("a"))
    with pytest.raises(JobExists):
        store.create_job(job("a"))


def in_a_deadlock(database, ours, theirs) -> list[BaseException]:
    """Both sides lock a row, then want the other's; the errors that came of it."""
    met, errors = threading.Barrier(2), []

    def side(lock: str, want: str) -> None:
        connection = database.connect()
        try:
            for statement in ("BEGIN", lock):
                run_on(connection, statement)
            met.wait(PATIENCE)
            run_on(connection, want)
            run_on(connection, "COMMIT")
        except BaseException as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=side, args=each) for each in (ours, theirs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    return errors


LOCK = "SELECT id FROM batch_job WHERE id = '{}' FOR UPDATE"


@on_servers
def test_a_real_deadlock_is_what_the_faults_say(database, store):
    """The server's own error in a deadlock is one that is tried again."""
    for name in ("a", "b"):
        store.create_job(job(name))
    a, b = LOCK.format("a"), LOCK.format("b")
    (error,) = in_a_deadlock(database, (a, b), (b, a))
    assert type(translate(error)) is StoreBusy


@on_servers
def test_a_deadlock_ends_the_applications_transaction(database, store):
    """What the application did before is never committed without what came after it."""
    points = Points(store.engine)
    store.create_job(job("kept"))
    with store.engine.begin() as connection:
        bound = store.bound_to(connection)
        bound.create_job(job("first"))
        fault = RollsBack(points, BEFORE_STATEMENT, 1, lambda: database.fault("busy"))
        with listening(points, fault), pytest.raises(StoreBusy):
            bound.put_targets("kept", targets(2))
        assert fault.raised == 1
        with pytest.raises(StoreError):
            bound.create_job(job("second"))
    assert [each.id for each in store.list_jobs()] == ["kept"]
    assert broken(database, submitted=False) == []


@on_servers
def test_a_deadlock_among_outcomes_that_are_stored_one_by_one(database, store, monkeypatch):
    """None of them is told as stored, or stored as failed, because of it: all are tried again."""
    for name in ("a", "b", "c"):
        submit(store, name)
    claims = exchange(store, want=3).claims
    points = Points(store.engine)
    singly = BatchRepository(store.engine)
    results = ['"1"', '"2"', '"3"']
    outcomes = [done(claim, result) for claim, result in zip(claims, results, strict=True)]
    other = Fault(BEFORE_STATEMENT, 0, lambda: database.fault("other"))
    deadlock = RollsBack(points, BEFORE_STATEMENT, 12, lambda: database.fault("busy"))

    def at(point: str, statement: str) -> None:
        other(point, statement)
        if not statement.startswith(("SAVEPOINT", "RELEASE", "ROLLBACK")):
            deadlock(point, statement)

    with listening(points, at):
        answer = exchange(singly, outcomes, want=0)
    assert deadlock.raised == 1
    assert sorted(answer.stored) == sorted(claim.token for claim in claims)
    assert list(answer.unstorable) == []
    stored = database.query("SELECT status, result FROM batch_target ORDER BY job_id")
    assert stored == [("done", result) for result in results]
    assert broken(database) == []


@on_servers
def test_an_interrupt_in_the_middle_of_an_answer(store, caplog) -> None:
    """Ctrl-C between a statement and its answer: that connection is given up, and none is told."""
    submit(store, "a")
    points = Points(store.engine)
    interrupted = Fault(AFTER_STATEMENT, 0, KeyboardInterrupt)
    with listening(points, interrupted), pytest.raises(KeyboardInterrupt):
        store.get_job("a")
    assert interrupted.raised == 1
    before = points.here.connection
    assert store.get_job("a").id == "a"
    assert points.here.connection is not before
    assert caplog.records == []


PASSES = {
    "postgresql": lambda: psycopg.OperationalError("nothing of the server's"),
    "mariadb": lambda: pymysql.err.OperationalError(1969, "max_statement_time exceeded"),
}


@on_servers
def test_a_driver_that_fails_without_a_reason_is_no_fault_of_the_values(database, store) -> None:
    """A statement that was ended, say: a result is kept and tried again, not stored as failed."""
    submit(store, "a")
    (claim,) = exchange(store).claims
    fault = Fault(BEFORE_STATEMENT, 0, PASSES[database.kind])
    with listening(Points(store.engine), fault), pytest.raises(StoreUnavailable):
        exchange(store, [done(claim)], want=0)
    assert exchange(store, [done(claim)], want=0).stored == [claim.token]


@on_servers
def test_a_read_in_the_applications_transaction_ends_with_it(database, store) -> None:
    """The application's commit ends what a bound read began; the next sees what came between."""
    engine = create_engine(parse_url(database.url))
    with engine.connect() as connection:
        bound = store.bound_to(connection)
        assert bound.get_job("a") is None
        assert connection.in_transaction()
        connection.commit()
        submit(store, "a")
        assert bound.get_job("a") is not None
    engine.dispose()
