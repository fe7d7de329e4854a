"""What becomes of one target: spec/seed-001, rules 3 and 4."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest

from batchmill.errors import RetryLater, TargetError
from batchmill.runner import Result
from tests.runner.helpers import ANNA, BERT, PATIENCE


def ended(runner, targets, caller=ANNA):
    """Submit, wait, and report."""
    job = runner.submit(caller, targets)
    runner.wait(job.job_id, PATIENCE)
    return runner.status(job.job_id)


@pytest.mark.parametrize(
    ("failing", "status"),
    [((), "done"), (("1",), "partial"), (("0", "1"), "failed")],
)
def test_the_terminal_status_is_told_by_the_targets(make, fetches, failing, status):
    """All done: done; all failed: failed; a mix: partial (spec/seed-001, rule 4)."""
    fetches.answers.update(dict.fromkeys(failing, OSError("no")))
    report = ended(make(), ["0", "1"])
    assert (report.job.status, report.job.error, report.job.targets_done) == (status, "", 2)


def test_results_and_errors_are_stored_as_they_were_told(make, fetches):
    """Content and meta; a TargetError's text and hint; any other text (spec/seed-001, rule 3)."""
    fetches.answers.update(
        ok=Result({"a": [1, None]}, meta={"n": 1}),
        told=TargetError("not there", hint="look elsewhere", status=404),
        other=OSError("disk"),
    )
    ok, told, other = ended(make(), ["ok", "told", "other"]).targets
    assert (ok.status, ok.result) == ("done", Result({"a": [1, None]}, {"n": 1}))
    assert (ok.error, ok.hint) == ("", "")
    assert (told.status, told.error, told.hint) == ("failed", "not there", "look elsewhere")
    assert (other.status, other.error, other.hint, other.result) == ("failed", "disk", "", None)


class Unspeakable(Exception):
    """An error inside the error path."""

    def __str__(self):
        raise RuntimeError("again")


ODD_RESULTS = [
    {1, 2},
    b"\xff",
    datetime.now(UTC),
    10**5000,
    math.nan,
    "\ud83d",
    {1: 1},
]


@pytest.mark.parametrize("odd", ODD_RESULTS, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("wrap", [Result, lambda odd: Result("x", meta={"x": odd})])
def test_a_result_that_is_not_json_fails_its_target_only(make, fetches, odd, wrap):
    """That target fails with a clear text, the job is partial (cases.md 5, 21 and 22)."""
    fetches.answers["odd"] = wrap(odd)
    report = ended(make(), ["fine", "odd", "after"])
    assert [each.status for each in report.targets] == ["done", "failed", "done"]
    assert report.targets[1].error.startswith("result: not JSON: ")
    assert report.job.status == "partial"


def test_an_exception_without_a_text_fails_its_target_only(make, fetches):
    """An exception whose __str__ raises is stored by its class (cases.md 5)."""
    fetches.answers["odd"] = Unspeakable()
    report = ended(make(), ["odd", "after"])
    assert report.targets[0].error == "Unspeakable (its text can't be read)"
    assert report.job.status == "partial"


@pytest.mark.parametrize("text", ["a\x00b", "\ud83d"])
def test_texts_that_a_database_can_not_hold_come_back_readable(make, fetches, text):
    """NUL and lone surrogates in error and hint are replaced (cases.md 22)."""
    fetches.answers["odd"] = TargetError(text, hint=text)
    report = ended(make(), ["odd", "after"])
    assert (
        report.targets[0].error
        == report.targets[0].hint
        == text.replace("\x00", "\ufffd").replace("\ud83d", "\ufffd")
    )
    assert report.targets[1].status == "done"


def test_a_nul_in_a_result_round_trips(make, fetches):
    """JSON escapes it, so every database holds it (cases.md 22)."""
    fetches.answers["odd"] = Result("a\x00b")
    assert ended(make(), ["odd"]).targets[0].result == Result("a\x00b")


@pytest.mark.parametrize(
    "error",
    [
        TypeError("secret"),
        SystemExit("secret"),
        KeyboardInterrupt("secret"),
        GeneratorExit("secret"),
        StopIteration("secret"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_panic_is_an_internal_error_and_the_worker_lives(make, fetches, error):
    """Its value is never echoed, and the next target is fetched (spec/seed-001, rule 3)."""
    fetches.answers["odd"] = error
    report = ended(make(), ["odd", "after"])
    assert [each.error for each in report.targets] == ["internal error", ""]


def test_which_errors_are_internal_can_be_configured(make, fetches):
    """RunnerConfig.internal_errors replaces the list."""
    fetches.answers.update(key=KeyError("shown"), os=OSError("hidden"))
    report = ended(make(internal_errors=(OSError,)), ["key", "os"])
    assert [each.error for each in report.targets] == ["'shown'", "internal error"]


def test_a_busy_target_is_tried_again_and_the_rotation_goes_on(make, fetches):
    """RetryLater leaves the target pending, and others go first (spec/seed-001, rule 3)."""
    tries = []

    def busy_twice(context):
        tries.append(context.attempt)
        if len(tries) < 3:
            raise RetryLater
        return Result("at last")

    fetches.answers["a1"] = busy_twice
    fetches.hold("a1")
    runner = make(retry_wait=timedelta(milliseconds=50))
    a = runner.submit(ANNA, ["a1", "a2"])
    fetches.wait_for("a1")
    b = runner.submit(BERT, ["b1"])
    fetches.release()
    assert runner.wait(a.job_id, PATIENCE).status == "done"
    runner.wait(b.job_id, PATIENCE)
    assert tries == [1, 2, 3]
    assert fetches.calls == ["a1", "b1", "a1", "a1", "a2"]


def test_a_target_that_stays_busy_fails_after_retry_for(make, fetches, clock):
    """Busy for strictly longer than retry_for: failed with the text (spec/seed-001, rule 3)."""
    fetches.answers["u"] = RetryLater("too busy")
    runner = make(clock=clock, retry_wait=timedelta(seconds=2), retry_for=timedelta(seconds=10))
    job = runner.submit(ANNA, ["u"])
    fetches.wait_for("u")
    clock.advance(10)
    fetches.wait_for("u", times=2)
    assert runner.progress(job.job_id).status == "running"
    clock.advance(2)
    assert runner.wait(job.job_id, PATIENCE).status == "failed"
    assert runner.status(job.job_id).targets[0].error == "too busy"
    assert fetches.calls == ["u"] * 3


@pytest.mark.parametrize("after", [-5, math.nan, math.inf, 1e18, None, "soon", True])
def test_an_odd_pause_neither_stops_the_runner_nor_heats_it(make, fetches, clock, after):
    """The other job's target starts at once; the busy one isn't tried again (cases.md 19)."""
    fetches.answers["busy"] = RetryLater(after=after)
    runner = make(clock=clock, retry_wait=timedelta(seconds=2))
    busy = runner.submit(ANNA, ["busy"])
    fetches.wait_for("busy")
    other = runner.submit(BERT, ["other"])
    assert runner.wait(other.job_id, PATIENCE).status == "done"
    assert fetches.calls.count("busy") == 1
    assert runner.progress(busy.job_id).status == "running"


def test_results_above_the_limit_fail_with_their_size(make, fetches):
    """max_result_bytes bounds one stored result."""
    fetches.answers.update(large=Result("x" * 100))
    report = ended(make(max_result_bytes=50), ["large", "small"])
    assert report.targets[0].error == "result too large: 114 bytes, at most 50 are kept"
    assert report.targets[1].status == "done"


def test_the_byte_budget_is_kept_after_each_target(make, fetches, store, clock):
    """Older finished jobs go when the total is over max_bytes (spec/seed-001, rule 3)."""
    fetches.answers.update({name: Result("x" * 1000) for name in ("1", "2", "3")})
    runner, jobs = make(max_bytes=2500, clock=clock), []
    for name in ("1", "2", "3"):
        clock.advance(1)
        jobs.append(ended(runner, [name]).job.id)
    assert [store.get_job(job) is not None for job in jobs] == [False, True, True]
