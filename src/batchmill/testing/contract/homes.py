"""Local jobs: they live and end with the runner that they belong to (design.md section 5)."""

from __future__ import annotations

import pytest

from batchmill.records import RUNNER_LOST, JobStatus, Settled
from batchmill.testing.contract.base import SubmittedContract
from batchmill.testing.contract.steps import (
    Steps,
    T,
    contents_of,
    done,
    job_in,
    statuses_in,
)
from batchmill.testing.contract.surface import Store


class Homes(SubmittedContract):
    """release_lost of jobs with a home, and leave."""

    def test_a_home_not_seen_fails_its_jobs(self, store: Store, steps: Steps) -> None:
        """A live job whose home wasn't seen for hold_for fails: "runner lost", lease now, told."""
        steps.submit("a", 2, home="r1")
        assert steps.release(now=T + 59.9).settled == []
        released = steps.release(now=T + 60)
        assert released.settled == [Settled("a", JobStatus.FAILED, T)]
        job = job_in(store, "a")
        assert (job.status, job.error, job.lease) == (JobStatus.FAILED, RUNNER_LOST, T + 60)
        assert steps.exchange(want=5, runner="r1", now=T + 60).claims == []

    def test_what_it_had_in_flight_ends(self, store: Store, steps: Steps) -> None:
        """The target that a lost home had in flight is pending, and its outcome is refused."""
        steps.submit("a", 2, home="r1")
        claim = steps.claim(runner="r1")
        released = steps.release(now=T + 60)
        assert (released.put_back, released.failed, len(released.settled)) == (0, [], 1)
        assert statuses_in(store, "a") == ["pending", "pending"]
        assert steps.exchange(done(claim), runner="r1", now=T + 61).refused == [claim.token]
        assert job_in(store, "a").targets_done == 0

    def test_a_home_that_is_seen_keeps_its_jobs(self, store: Store, steps: Steps) -> None:
        """A runner that renews keeps all its jobs, held or waiting."""
        steps.submit("a", home="r1")
        steps.submit("b", home="r1")
        claim = steps.claim(runner="r1")
        steps.hold(claim.token, now=T + 50, hold_for=60)
        before = contents_of(store)
        assert steps.release(now=T + 109).settled == []
        assert contents_of(store) == before
        assert len(steps.release(now=T + 110).settled) == 2

    def test_a_hold_that_its_home_forgot_is_put_back(self, store: Store, steps: Steps) -> None:
        """A claim that its living home never renews, its answer having been lost, is put back."""
        steps.submit("a", home="r1")
        steps.claim(runner="r1")
        steps.hold(now=T + 50, hold_for=60)
        released = steps.release(now=T + 60)
        assert (released.put_back, released.settled) == (1, [])
        assert statuses_in(store, "a") == ["pending"]
        assert steps.claim(runner="r1", now=T + 60).attempt == 2

    def test_who_asks_for_its_own_jobs_claims_no_shared_one(self, steps: Steps) -> None:
        """Not shared, no job without a home is claimed, nor the next target of one it stored."""
        steps.submit("a", 3)
        claim = steps.claim()
        assert steps.exchange(done(claim), want=1, shared=False).claims == []
        assert [each.idx for each in steps.exchange(want=1).claims] == [1]

    def test_only_its_own_jobs_fail(self, store: Store, steps: Steps) -> None:
        """Jobs of a home that is seen, and shared jobs, are none of a lost home's (cases.md 6)."""
        steps.submit("mine", home="r1")
        steps.submit("other", home="r2")
        steps.submit("shared")
        steps.hold(runner="r2", now=T + 50, hold_for=60)
        released = steps.release(now=T + 60)
        assert [settled.job_id for settled in released.settled] == ["mine"]
        assert (released.put_back, released.failed) == (0, [])
        assert (job_in(store, "other").status, job_in(store, "shared").status) == (
            JobStatus.QUEUED,
            JobStatus.QUEUED,
        )

    def test_a_longer_hold_of_its_own_counts(self, steps: Steps) -> None:
        """A home that said a longer hold_for is lost after that, whoever asks with a shorter."""
        steps.submit("a", home="r1")
        steps.hold(now=T, hold_for=600)
        assert steps.release(now=T + 599, hold_for=5).settled == []
        assert len(steps.release(now=T + 600, hold_for=5).settled) == 1

    def test_a_longer_hold_of_who_asks_counts(self, steps: Steps) -> None:
        """Who asks with a longer hold_for is more patient than the home's own."""
        steps.submit("a", home="r1")
        steps.hold(now=T, hold_for=5)
        assert steps.release(now=T + 599, hold_for=600).settled == []
        assert len(steps.release(now=T + 600, hold_for=600).settled) == 1

    def test_a_submit_counts_as_seen(self, steps: Steps) -> None:
        """A runner that submits a job of its own is seen at that time."""
        steps.submit("a", home="r1")
        steps.submit("b", home="r1", now=T + 50)
        assert steps.release(now=T + 109).settled == []
        assert len(steps.release(now=T + 110).settled) == 2

    def test_a_runner_that_left_is_lost_at_once(self, store: Store, steps: Steps) -> None:
        """After leave a runner's local jobs fail at the next release, however short ago."""
        steps.submit("a", home="r1")
        steps.submit("b", home="r2")
        steps.submit("c")
        steps.hold(now=T, hold_for=600)
        store.leave("r1")
        released = steps.release(now=T)
        assert released.settled == [Settled("a", JobStatus.FAILED, T)]
        assert job_in(store, "b").status is JobStatus.QUEUED

    def test_a_lost_home_begins_anew(self, steps: Steps) -> None:
        """A lost runner without jobs is forgotten, what it held for too, until it says so again."""
        steps.hold(now=T, hold_for=600)
        steps.release(now=T + 1000)
        steps.submit("a", home="r1", now=T + 1000)
        assert steps.release(now=T + 1059).settled == []
        assert len(steps.release(now=T + 1060).settled) == 1

    def test_leaving_itself_changes_no_job(self, store: Store, steps: Steps) -> None:
        """leave only says so; a runner that nobody knows may leave too."""
        steps.submit("a", home="r1")
        before = contents_of(store)
        store.leave("r1")
        store.leave("unknown")
        assert contents_of(store) == before

    def test_a_cancelled_job_of_a_lost_home_ends(self, store: Store, steps: Steps) -> None:
        """What a cancelled local job left in flight ends with its home; it stays cancelled."""
        steps.submit("a", 2, home="r1")
        steps.claim(runner="r1")
        store.cancel_job("a", now=T)
        store.leave("r1")
        assert steps.release(now=T).settled == []
        assert statuses_in(store, "a") == ["pending", "pending"]
        assert job_in(store, "a").status is JobStatus.CANCELLED

    @pytest.mark.parametrize("count", [1, 3])
    def test_a_limit_bounds_failed_jobs(self, steps: Steps, count: int) -> None:
        """At most limit jobs of lost homes fail in one call."""
        for number in range(4):
            steps.submit(f"j{number}", home="r1")
        assert len(steps.release(now=T + 60, limit=count).settled) == count
