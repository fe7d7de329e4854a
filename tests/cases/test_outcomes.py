"""Cases from the field about what a fetch brings, on a whole runner and a file."""

from __future__ import annotations

import json
import math
import sqlite3
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from time import monotonic

import pytest
from sqlalchemy.exc import IntegrityError

from batchmill.errors import InvalidInput, RetryLater, TargetError
from batchmill.records import Outcome
from batchmill.runner import Result, Runner, RunnerConfig, Target
from tests.runner.helpers import ANNA, BERT, PATIENCE, Clock, Fetches
from tests.store.support import exchange, job, submit, targets
from tests.support.injection import BEFORE_STATEMENT, Counts, Points, listening
from tests.support.invariants import broken

ODD_TEXTS = ["a\x00b", "\ud83d"]
CONFIG = {"jobs_per_caller": 10, "jobs_total": 10, "poll_interval": timedelta(milliseconds=20)}


@contextmanager
def running(store, fetch, **given):
    """A local runner of one worker, closed at the end."""
    names = set(RunnerConfig.__dataclass_fields__) & set(given)
    config = RunnerConfig(**CONFIG | {name: given.pop(name) for name in names})
    with Runner(store, fetch, config, **given) as runner:
        yield runner


def report_of(store, answers: dict, urls: list):
    """The report of a job of these URLs, once it has ended."""
    with running(store, Fetches(**answers)) as runner:
        ended = runner.wait(runner.submit(ANNA, urls).job_id, PATIENCE)
        return runner.status(ended.id)


class Unspeakable(Exception):
    """An error in the error path."""

    def __str__(self) -> str:
        raise RuntimeError("again")


def test_case_5_an_error_inside_the_error_path(database, store):
    """Each odd outcome fails its own target, with a clear text; the rest is done: partial."""
    odd = {
        "set": Result({1, 2}),
        "bytes": Result(b"\xff"),
        "datetime": Result(datetime.now(UTC)),
        "int": Result(10**5000),
        "raised": Unspeakable(),
        "bare": {1, 2},
    }
    report = report_of(store, odd, ["first", *odd, "last"])
    assert report.job.status == "partial"
    assert [each.status for each in report.targets] == ["done", *["failed"] * 6, "done"]
    errors = [each.error for each in report.targets[1:-1]]
    assert all(error.startswith("result: not JSON: ") for error in errors[:4])
    assert errors[4:] == [
        "Unspeakable (its text can't be read)",
        "fetch must return a Result, not set",
    ]
    assert broken(database) == []


@pytest.mark.parametrize("after", [-5, math.nan, math.inf, 1e18, None])
def test_case_19_an_odd_pause(database, store, after):
    """The other job starts within a second, nothing runs hot, and retry_for bounds the tries."""
    clock, fetches = Clock(), Fetches(busy=RetryLater("too busy", after=after))
    given = {"retry_wait": timedelta(seconds=2), "retry_for": timedelta(seconds=10)}
    with running(store, fetches, clock=clock, **given) as runner:
        busy = runner.submit(ANNA, ["busy"])
        fetches.wait_for("busy")
        begun = monotonic()
        other = runner.submit(BERT, ["other"])
        fetches.wait_for("other")
        assert monotonic() - begun < 1
        assert runner.wait(other.job_id, PATIENCE).status == "done"
        with listening(Points(store.engine), Counts()) as counts:
            fetches._changed.acquire()
            fetches._changed.wait(0.2)
            fetches._changed.release()
        assert counts.of(BEFORE_STATEMENT) < 100
        assert fetches.calls.count("busy") == 1
        while runner.progress(busy.job_id).status == "running":
            clock.advance(2)
            tries = fetches.calls.count("busy")
            assert tries <= 7
            with fetches._changed:
                fetches._changed.wait(0.05)
        assert runner.status(busy.job_id).targets[0].error == "too busy"
    assert broken(database) == []


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_case_21_nan_is_never_written_as_json(database, store, odd):
    """The target fails with a clear text, every stored result is strict JSON, options likewise."""
    report = report_of(store, {"odd": Result("x", meta={"x": odd})}, ["fine", "odd", "last"])
    assert [each.status for each in report.targets] == ["done", "failed", "done"]
    assert report.targets[1].error.startswith("result: not JSON: ")

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    stored = database.query("SELECT result, options FROM batch_target")
    for text in (text for row in stored for text in row if text is not None):
        json.loads(text, parse_constant=refuse)
    with pytest.raises(InvalidInput, match=r"targets\[0\]\.options: not JSON"):
        Runner(store, print).submit(ANNA, [Target("u", {"x": odd})])


@pytest.mark.parametrize("odd", ODD_TEXTS, ids=ascii)
def test_case_22_texts_at_a_submit(database, store, odd):
    """A url or options that can't be stored: a clear rejection, and nothing of the job."""
    runner = Runner(store, print)
    with pytest.raises(InvalidInput, match=r"targets\[1\]\.url: must not contain"):
        runner.submit(ANNA, ["fine", odd])
    if odd == "\ud83d":
        with pytest.raises(InvalidInput, match=r"targets\[1\]\.options: not JSON"):
            runner.submit(ANNA, ["fine", Target("u", {"x": odd})])
    else:
        runner.submit(ANNA, ["fine", Target("u", {"x": odd})])
        assert database.query("SELECT options FROM batch_target WHERE idx = 1") == [
            ('{"x":"a\\u0000b"}',)
        ]
        return
    assert database.query("SELECT count(*) FROM batch_job") == [(0,)]


@pytest.mark.parametrize("odd", ODD_TEXTS, ids=ascii)
def test_case_22_texts_that_a_fetch_brings(database, store, odd):
    """A result, error or hint: it round-trips, or that one target fails; its siblings are done."""
    answers = {"result": Result(odd), "error": TargetError(odd), "hint": TargetError("no", odd)}
    report = report_of(store, answers, ["first", *answers, "last"])
    first, result, error, hint, last = report.targets
    assert [first.status, last.status] == ["done", "done"]
    if odd == "\ud83d":
        assert (result.status, result.result) == ("failed", None)
        assert "lone surrogate" in result.error
    else:
        assert result.result == Result(odd)
    readable = odd.replace("\x00", "\ufffd").replace("\ud83d", "\ufffd")
    assert (error.status, error.error) == ("failed", readable)
    assert (hint.status, hint.hint) == ("failed", readable)
    assert broken(database) == []


@pytest.mark.parametrize("field", ["result", "error", "hint"])
@pytest.mark.parametrize("odd", ODD_TEXTS, ids=ascii)
def test_case_22_texts_in_an_outcome(database, store, odd, field):
    """Handed to the store itself, that one target is failed with a clear text, the others done."""
    for name in ("a", "b"):
        submit(store, name)
    one, two = exchange(store, want=2).claims
    kind = "done" if field == "result" else "failed"
    bad = Outcome(one.job_id, one.idx, one.token, kind, **{field: odd})
    good = Outcome(two.job_id, two.idx, two.token, "done", result="{}")
    answer = exchange(store, [bad, good], want=0)
    assert list(answer.stored) == [one.token, two.token]
    assert list(answer.unstorable) == [one.token]
    (target,) = store.get_targets("a")
    assert target.error.startswith(f"the outcome can't be stored: {field}: must not contain")
    assert store.get_job("b").status == "done"
    assert broken(database) == []


@pytest.mark.parametrize("odd", ODD_TEXTS, ids=ascii)
def test_case_22_texts_written_by_hand(database, store, odd):
    """A job's error, and every text of a target, is rejected by its name; nothing is stuck."""
    store.create_job(job("a", targets_total=1))
    store.put_targets("a", targets(1))
    before = database.dump()
    calls = {
        "error": lambda: store.set_job_status("a", "failed", now=100, error=odd),
        "reason": lambda: store.mark_in_flight_failed(odd, now=100),
        "job.error": lambda: store.create_job(job("b", error=odd)),
        "result": lambda: store.update_target("a", 0, now=100, status="done", result=odd),
        "hint": lambda: store.update_target("a", 0, now=100, status="failed", hint=odd),
    }
    for name, call in calls.items():
        with pytest.raises(InvalidInput, match=f"^{name}: must not contain"):
            call()
    assert database.dump() == before


def test_case_s9_a_database_error_of_the_applications_is_stored_without_its_sql(store):
    """What SQLAlchemy adds to a driver's text, the statement and its parameters, is not stored."""
    driver = sqlite3.IntegrityError("UNIQUE constraint failed: users.email")
    raised = IntegrityError("INSERT INTO users VALUES (?)", ("s3cret",), driver)
    report = report_of(store, {"odd": raised}, ["odd"])
    assert report.targets[0].error == "UNIQUE constraint failed: users.email"
