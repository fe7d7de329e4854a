"""spec/seed-001, the runner: rules 1, 2 and 5 to 8, on every store."""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import replace
from typing import Any

import pytest

from batchmill.errors import (
    Busy,
    CallerBusy,
    NoTargets,
    StoreUnavailable,
    TargetError,
    TooManyTargets,
)
from batchmill.records import JobStatus
from batchmill.runner import Options, Result, Runner, Target
from tests.spec.parts import ADA, BOB, CONFIG, SOON, Gate, Seen, Start, echo

# Rule 1: submit


def test_nothing_to_do_is_rejected(runner_of: Start, store: Any) -> None:
    """spec/seed-001, rule 1: no targets is NoTargets, and nothing is stored."""
    with runner_of(echo) as runner, pytest.raises(NoTargets, match="no targets"):
        runner.submit(ADA, [])
    assert store.list_jobs() == []


def test_the_same_submission_is_reused(runner_of: Start, store: Any, seen: Seen) -> None:
    """spec/seed-001, rule 1: the same caller and targets get the same job, told as reused."""
    with runner_of(echo) as runner:
        first = runner.submit(ADA, ["u1", "u2"])
        runner.wait(first.job_id, SOON)
        again = runner.submit(ADA, ["u1", "u2"])
        other = runner.submit(BOB, ["u1", "u2"])
        runner.wait(other.job_id, SOON)
    assert again == (first.job_id, True)
    assert other.job_id != first.job_id
    assert seen.jobs.count("reused") == 1
    assert len(store.list_jobs()) == 2


def test_the_key_is_a_digest(runner_of: Start, store: Any) -> None:
    """spec/seed-001, rule 1: the key is the SHA-256 of the name, a NUL, and the targets' JSON."""
    with runner_of(echo) as runner:
        job_id, _ = runner.submit(ADA, [Target("u1", Options(mode="text"))])
        runner.wait(job_id, SOON)
    targets = json.dumps(
        [{"options": {"mode": "text"}, "url": "u1"}], separators=(",", ":"), sort_keys=True
    )
    expected = hashlib.sha256(b"ada\x00" + targets.encode()).hexdigest()
    assert store.get_job(job_id).idem_key == expected


def test_a_reused_job_needs_no_cap(runner_of: Start) -> None:
    """spec/seed-001, rule 1: the lookup comes before the caps."""
    gate = Gate("u1")
    with runner_of(gate, replace(CONFIG, jobs_per_caller=1, jobs_total=1)) as runner:
        first = runner.submit(ADA, ["u1"])
        assert runner.submit(ADA, ["u1"]) == (first.job_id, True)
        gate.release("u1")


def test_the_caps_are_kept_in_order(runner_of: Start) -> None:
    """spec/seed-001, rule 1: too many targets, then a busy caller, then a full store."""
    gate = Gate("u1")
    config = replace(CONFIG, targets_per_job=2, jobs_per_caller=1, jobs_total=1)
    with runner_of(gate, config) as runner:
        runner.submit(ADA, ["u1"])
        rejections = [
            (TooManyTargets, "too many targets", ADA, ["a", "b", "c"]),
            (CallerBusy, "busy", ADA, ["a"]),
            (Busy, "jobs busy", BOB, ["a"]),
        ]
        for kind, text, caller, targets in rejections:
            with pytest.raises(kind) as caught:
                runner.submit(caller, targets)
            assert str(caught.value) == text
        gate.release("u1")


def test_a_job_is_stored_before_it_is_told(store: Any, clock: Any, seen: Seen) -> None:
    """spec/seed-001, rule 1: job and targets are stored, queued and pending, before it returns."""
    runner = Runner(store, echo, CONFIG, hooks=seen.hooks(), clock=clock)
    job_id, reused = runner.submit(ADA, ["u1", Target("u2", Options(pages="1-2"))])
    job, targets = store.get_job(job_id), store.get_targets(job_id)
    runner.close()
    assert (len(job_id), reused, seen.jobs) == (32, False, ["created"])
    assert (job.status, job.created_at, job.lease) == (JobStatus.QUEUED, int(clock()), int(clock()))
    assert [target.options for target in targets] == ["{}", '{"pages":"1-2"}']
    assert {target.status.value for target in targets} == {"pending"}


def test_a_submit_sweeps(runner_of: Start, store: Any, clock: Any) -> None:
    """spec/seed-001, rule 1: a created submit sweeps what has run out."""
    with runner_of(echo) as runner:
        old, _ = runner.submit(ADA, ["u1"])
        runner.wait(old, SOON)
        clock.move(24 * 3600)
        new, _ = runner.submit(ADA, ["u2"])
        runner.wait(new, SOON)
        assert store.get_job(old) is None


# Rule 2: workers


def test_two_jobs_alternate(runner_of: Start) -> None:
    """spec/seed-001, rule 2: one worker, b submitted while a1 is in flight: a1 b1 a2 b2 a3 b3."""
    gate = Gate("a1")
    with runner_of(gate) as runner:
        first, _ = runner.submit(ADA, ["a1", "a2", "a3"])
        gate.reached("a1")
        second, _ = runner.submit(BOB, ["b1", "b2", "b3"])
        gate.release("a1")
        runner.wait(first, SOON)
        runner.wait(second, SOON)
    assert gate.order == ["a1", "b1", "a2", "b2", "a3", "b3"]


def test_a_job_is_serial(runner_of: Start, store: Any) -> None:
    """spec/seed-001, rule 2: also with idle workers i+1 doesn't start before i is stored."""
    stored: list[list[str]] = []

    def fetch(context: Any, _caller: Any, target: Target) -> Result:
        stored.append([row.status.value for row in store.get_targets(context.job_id)])
        return Result(target.url)

    with runner_of(fetch, replace(CONFIG, workers=2)) as runner:
        job_id, _ = runner.submit(ADA, ["u1", "u2", "u3"])
        runner.wait(job_id, SOON)
    assert stored == [
        ["running", "pending", "pending"],
        ["done", "running", "pending"],
        ["done", "done", "running"],
    ]


def test_a_job_not_reached_stays_queued(runner_of: Start, store: Any) -> None:
    """spec/seed-001, rule 2: the first target makes a job running; one not reached is queued."""
    gate = Gate("a1")
    with runner_of(gate) as runner:
        first, _ = runner.submit(ADA, ["a1"])
        gate.reached("a1")
        second, _ = runner.submit(BOB, ["b1"])
        statuses = [store.get_job(job_id).status.value for job_id in (first, second)]
        gate.release("a1")
        runner.wait(second, SOON)
    assert statuses == ["running", "queued"]


# Rule 5: cancel


def test_a_cancel_ends_the_job_at_once(runner_of: Start, store: Any, seen: Seen) -> None:
    """spec/seed-001, rule 5: cancelled at once; what is in flight is stored, no other starts."""
    gate = Gate("u1")
    with runner_of(gate) as runner:
        job_id, _ = runner.submit(ADA, ["u1", "u2", "u3"])
        gate.reached("u1")
        assert runner.cancel(job_id) is True
        assert store.get_job(job_id).status is JobStatus.CANCELLED
        assert runner.cancel(job_id) is False
        gate.release("u1")
        other, _ = runner.submit(BOB, ["b1"])
        runner.wait(other, SOON)
    assert [row.status.value for row in store.get_targets(job_id)] == ["done", "pending", "pending"]
    assert store.get_job(job_id).status is JobStatus.CANCELLED
    assert gate.order == ["u1", "b1"]
    assert seen.jobs == ["created", "cancelled", "created", "done"]


def test_an_ended_job_is_not_cancelled(runner_of: Start, store: Any) -> None:
    """spec/seed-001, rule 5: an unknown or ended job answers False and stays as it is."""
    with runner_of(echo) as runner:
        assert runner.cancel("0" * 32) is False
        job_id, _ = runner.submit(ADA, ["u1"])
        runner.wait(job_id, SOON)
        assert runner.cancel(job_id) is False
    assert store.get_job(job_id).status is JobStatus.DONE


# Rule 6: status and touch


def test_status_only_reads(runner_of: Start, store: Any, clock: Any) -> None:
    """spec/seed-001, rule 6: status maps the rows, decodes results, and writes nothing."""

    def fetch(_context: Any, _caller: Any, _target: Target) -> Result:
        return Result("text", {"title": "T"})

    with runner_of(fetch) as runner:
        job_id, _ = runner.submit(ADA, ["u1"])
        runner.wait(job_id, SOON)
        before = store.get_job(job_id)
        clock.move(50)
        report = runner.status(job_id)
        assert store.get_job(job_id) == before
        assert runner.status("0" * 32) is None
    assert report.targets[0].result == Result("text", {"title": "T"})
    assert (report.job.id, report.job.caller, report.job.targets_done) == (job_id, "ada", 1)


def test_touch_bumps_the_lease(runner_of: Start, store: Any, clock: Any) -> None:
    """spec/seed-001, rule 6: touch sets the lease to now."""
    with runner_of(echo) as runner:
        job_id, _ = runner.submit(ADA, ["u1"])
        runner.wait(job_id, SOON)
        clock.move(50)
        runner.touch(job_id)
    assert store.get_job(job_id).lease == int(clock())


# Rule 7: depth and inflight


def test_depth_and_inflight_follow(runner_of: Start, seen: Seen) -> None:
    """spec/seed-001, rule 7: depth tells the live jobs, inflight the fetches, at each change."""
    gate = Gate("a1")
    with runner_of(gate) as runner:
        first, _ = runner.submit(ADA, ["a1"])
        gate.reached("a1")
        second, _ = runner.submit(BOB, ["b1"])
        gate.release("a1")
        runner.wait(first, SOON)
        runner.wait(second, SOON)
    assert (seen.depths[0], max(seen.depths), seen.depths[-1]) == (1, 2, 0)
    assert (max(seen.inflight), seen.inflight[-1]) == (1, 0)


# Rule 8: logs


def test_logs_name_no_address(
    runner_of: Start, store: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """spec/seed-001, rule 8: no log line of any outcome holds a URL or a host."""
    caplog.set_level(logging.DEBUG)
    url = "https://user:secret@host.example/path"

    def fetch(_context: Any, _caller: Any, target: Target) -> Result:
        if target.options.get("how") == "panic":
            raise ZeroDivisionError(target.url)
        raise TargetError(f"no answer from {target.url}")

    with runner_of(fetch) as runner:
        job_id, _ = runner.submit(ADA, [Target(url, {"how": "panic"}), Target(url)])
        runner.wait(job_id, SOON)
        runner.cancel(job_id)
    text = caplog.text
    assert "host.example" not in text
    assert "secret" not in text


def test_a_store_error_is_a_warning(
    runner_of: Start, store: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """spec/seed-001, rule 8: a store error is logged as a warning, and the runner goes on."""
    real, failures = store.exchange, []

    def exchange(*arguments: Any, **more: Any) -> Any:
        if not failures:
            failures.append(1)
            raise StoreUnavailable("the database can't be reached")
        return real(*arguments, **more)

    monkeypatch.setattr(store, "exchange", exchange)
    with runner_of(echo) as runner:
        job_id, _ = runner.submit(ADA, ["u1"])
        assert runner.wait(job_id, SOON).status is JobStatus.DONE
    assert failures
    assert any(record.levelno == logging.WARNING for record in caplog.records)
