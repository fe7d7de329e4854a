"""mark_in_flight_failed: the start of an application that owns its store (seed-000, rule 6)."""

from __future__ import annotations

import pytest

from batchmill.records import JobStatus, TargetStatus
from batchmill.testing.contract.base import Contract, SubmittedContract
from batchmill.testing.contract.steps import (
    Steps,
    T,
    add_job,
    contents_of,
    done,
    job_in,
    statuses_in,
    targets_in,
)
from batchmill.testing.contract.surface import Repository, Store


class Marking(Contract):
    """Jobs made by hand."""

    @pytest.mark.parametrize("status", [JobStatus.QUEUED, JobStatus.RUNNING])
    def test_live_jobs_fail(self, store: Repository, status: JobStatus) -> None:
        """Every live job becomes failed with the reason, its lease is now, and it is counted."""
        add_job(store, "a", status=status)
        add_job(store, "b")
        assert store.mark_in_flight_failed("restarted", now=T + 7.9) == 2
        for job_id in ("a", "b"):
            job = job_in(store, job_id)
            assert (job.status, job.error, job.lease) == (JobStatus.FAILED, "restarted", T + 7)
        assert store.count_live_jobs() == 0

    def test_terminal_jobs_are_left_alone(self, store: Repository) -> None:
        """Jobs that have ended stay exactly as they are, and aren't counted."""
        for status in JobStatus:
            if status.terminal:
                add_job(store, f"job-{status}", status=status)
        before = contents_of(store)
        assert store.mark_in_flight_failed("restarted", now=T + 7) == 0
        assert contents_of(store) == before

    def test_running_targets_are_pending_again(self, store: Repository) -> None:
        """Running targets go back to pending, finished ones stay, counters are left alone."""
        add_job(store, "a", 4)
        store.update_target("a", 0, now=T, status=TargetStatus.DONE, result="é")
        store.update_target("a", 1, now=T, status=TargetStatus.FAILED, error="e")
        store.update_target("a", 2, now=T, status=TargetStatus.RUNNING)
        store.mark_in_flight_failed("restarted", now=T)
        assert statuses_in(store, "a") == ["done", "failed", "pending", "pending"]
        assert targets_in(store, "a")[0].result == "é"
        assert (job_in(store, "a").targets_done, job_in(store, "a").nbytes) == (2, 2)

    def test_a_second_call_finds_nothing(self, store: Repository) -> None:
        """Marking again counts 0 and keeps the first reason."""
        add_job(store, "a")
        store.mark_in_flight_failed("first", now=T)
        assert store.mark_in_flight_failed("second", now=T + 1) == 0
        assert job_in(store, "a").error == "first"


class MarkingSubmitted(SubmittedContract):
    """Jobs in the rotation."""

    def test_a_marked_job_is_out_of_the_rotation(self, store: Store, steps: Steps) -> None:
        """Nothing of a marked job is claimed any more, in flight or not."""
        steps.submit("a", 2)
        steps.submit("b", 2)
        steps.claim()
        assert store.mark_in_flight_failed("restarted", now=T) == 2
        assert steps.drain(now=T + 500) == []
        assert steps.release(now=T + 500).put_back == 0

    def test_a_late_outcome_is_refused(self, store: Store, steps: Steps) -> None:
        """What was in flight is pending, and its outcome is refused and changes nothing."""
        steps.submit("a", 2)
        claim = steps.claim()
        store.mark_in_flight_failed("restarted", now=T + 1)
        before = contents_of(store)
        answer = steps.exchange(done(claim), now=T + 2)
        assert (answer.refused, answer.stored, answer.settled) == ([claim.token], [], [])
        assert contents_of(store) == before
        assert statuses_in(store, "a") == ["pending", "pending"]

    def test_cancelled_jobs_in_flight_end(self, store: Store, steps: Steps) -> None:
        """What a cancelled job left in flight ends too; the job stays cancelled, uncounted."""
        steps.submit("a", 2)
        claim = steps.claim()
        store.cancel_job("a", now=T + 1)
        assert store.mark_in_flight_failed("restarted", now=T + 2) == 0
        assert steps.exchange(done(claim), now=T + 3).refused == [claim.token]
        assert statuses_in(store, "a") == ["pending", "pending"]
        assert (job_in(store, "a").status, job_in(store, "a").error) == (JobStatus.CANCELLED, "")
