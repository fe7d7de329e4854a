"""spec/seed-001, the runner: rules 3 and 4, what becomes of a target and its job."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from batchmill.errors import (
    InternalError,
    RetryLater,
    TargetError,
)
from batchmill.records import JobStatus
from batchmill.runner import Result, Target
from tests.spec.parts import ADA, BOB, CONFIG, SOON, Seen, Start, until

# Rule 3: one target


def test_what_a_fetch_raises_is_stored(runner_of: Start) -> None:
    """spec/seed-001, rule 3: a TargetError's message and hint, any other's text and no hint."""
    errors = {
        "u1": TargetError("not found", "check the address", 404),
        "u2": OSError("refused"),
    }

    def fetch(_context: Any, _caller: Any, target: Target) -> Result:
        raise errors[target.url]

    with runner_of(fetch) as runner:
        job_id, _ = runner.submit(ADA, ["u1", "u2"])
        runner.wait(job_id, SOON)
        report = runner.status(job_id)
    assert [(target.error, target.hint) for target in report.targets] == [
        ("not found", "check the address"),
        ("refused", ""),
    ]
    assert {target.status.value for target in report.targets} == {"failed"}


def test_a_panic_is_not_repeated(runner_of: Start, seen: Seen) -> None:
    """spec/seed-001, rule 3: a mistake in code is stored as "internal error", never its text."""

    def fetch(_context: Any, _caller: Any, target: Target) -> Result:
        raise AssertionError(f"secret {target.url}")

    with runner_of(fetch) as runner:
        job_id, _ = runner.submit(ADA, ["u1"])
        runner.wait(job_id, SOON)
        report = runner.status(job_id)
    assert (report.targets[0].error, report.targets[0].hint) == ("internal error", "")
    assert isinstance(seen.targets[0][0], InternalError)


def test_a_busy_target_is_tried_again(runner_of: Start, clock: Any, seen: Seen) -> None:
    """spec/seed-001, rule 3: a busy target is pending, others go on, it is tried after its wait."""
    calls: list[tuple[str, float]] = []

    def fetch(_context: Any, _caller: Any, target: Target) -> Result:
        calls.append((target.url, clock()))
        if [url for url, _ in calls].count("a1") == 1 and target.url == "a1":
            raise OSError("wrapped") from RetryLater("busy")
        return Result(target.url)

    with runner_of(fetch) as runner:
        first, _ = runner.submit(ADA, ["a1"])
        second, _ = runner.submit(BOB, ["b1"])
        runner.wait(second, SOON)
        assert runner.status(first).targets[0].status.value == "pending"
        clock.move(2)
        assert runner.wait(first, SOON).status is JobStatus.DONE
    assert [url for url, _ in calls] == ["a1", "b1", "a1"]
    assert calls[2][1] - calls[0][1] == 2
    assert [error for error, _ in seen.targets] == [None, None]


def test_a_target_is_busy_for_so_long_only(runner_of: Start, store: Any, clock: Any) -> None:
    """spec/seed-001, rule 3: busy for longer than RetryFor, it is failed with the error's text."""
    tries: list[float] = []

    def fetch(_context: Any, _caller: Any, _target: Target) -> Result:
        tries.append(clock())
        raise RetryLater("still busy")

    def status() -> str:
        return store.get_targets(job_id)[0].status.value

    with runner_of(fetch) as runner:
        job_id, _ = runner.submit(ADA, ["u1"])
        until(lambda: len(tries) == 1 and status() == "pending")
        clock.move(600)
        until(lambda: len(tries) == 2 and status() == "pending")
        clock.move(2)
        job = runner.wait(job_id, SOON)
        report = runner.status(job_id)
    assert (job.status, report.targets[0].error) == (JobStatus.FAILED, "still busy")
    assert [now - tries[0] for now in tries] == [0, 600, 602]


def test_a_result_is_stored_as_json(runner_of: Start, store: Any, seen: Seen) -> None:
    """spec/seed-001, rule 3: the Result's JSON is stored, and the hook gets its bytes."""

    def fetch(_context: Any, _caller: Any, _target: Target) -> Result:
        return Result("é", {"pages": 2})

    with runner_of(fetch) as runner:
        job_id, _ = runner.submit(ADA, ["u1"])
        runner.wait(job_id, SOON)
    stored = store.get_targets(job_id)[0].result
    assert json.loads(stored) == {"content": "é", "meta": {"pages": 2}}
    assert seen.targets == [(None, len(stored.encode("utf-8")))]


def test_storing_keeps_the_budget(runner_of: Start, store: Any, clock: Any) -> None:
    """spec/seed-001, rule 3: after a store the oldest finished jobs go until the total fits."""

    def fetch(_context: Any, _caller: Any, _target: Target) -> Result:
        return Result("x" * 1000)

    with runner_of(fetch, replace(CONFIG, max_bytes=2500)) as runner:
        ids = []
        for number in range(3):
            clock.move(1)
            ids.append(runner.submit(ADA, [f"u{number}"]).job_id)
            runner.wait(ids[-1], SOON)
    assert [store.get_job(job_id) is None for job_id in ids] == [True, False, False]


# Rule 4: terminal status


@pytest.mark.parametrize(
    ("urls", "status"),
    [(["ok", "ok2"], "done"), (["bad", "bad2"], "failed"), (["ok", "bad"], "partial")],
)
def test_the_last_target_ends_the_job(
    runner_of: Start, clock: Any, seen: Seen, urls: list[str], status: str
) -> None:
    """spec/seed-001, rule 4: all done, all failed, or partial; its hooks once, with the seconds."""

    def fetch(_context: Any, _caller: Any, target: Target) -> Result:
        clock.move(3)
        if target.url.startswith("bad"):
            raise TargetError("bad")
        return Result("ok")

    with runner_of(fetch) as runner:
        job_id, _ = runner.submit(ADA, urls)
        assert runner.wait(job_id, SOON).status.value == status
    assert seen.jobs == ["created", status]
    assert seen.seconds == [6.0]
