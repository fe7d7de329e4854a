"""Holds: renewed by who lives, released from who is lost (design.md section 4)."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from batchmill.records import RUNNER_LOST, Claim, JobStatus, Outcome, Settled, TargetStatus
from batchmill.testing.contract.base import SubmittedContract
from batchmill.testing.contract.steps import (
    Steps,
    T,
    contents_of,
    done,
    failed,
    job_in,
    later,
    put_back,
    race,
    statuses_in,
    targets_in,
)
from batchmill.testing.contract.surface import Store


class Holding(SubmittedContract):
    """hold."""

    def test_a_renewed_hold_lasts(self, steps: Steps) -> None:
        """A renewed hold lapses at the renewal's now + hold_for, not before."""
        steps.submit("a")
        claim = steps.claim(hold_for=60)
        held = steps.hold(claim.token, now=T + 50, hold_for=60)
        assert (held.lost, held.cancelled) == ([], [])
        assert steps.release(now=T + 109.9).put_back == 0
        assert steps.release(now=T + 110).put_back == 1

    def test_a_renewal_bumps_the_lease(self, store: Store, steps: Steps) -> None:
        """A renewal sets the lease of the jobs in hand, and of no other."""
        steps.submit("a")
        steps.submit("b")
        claim = steps.claim()
        steps.hold(claim.token, now=T + 50.5, hold_for=60)
        assert (job_in(store, "a").lease, job_in(store, "b").lease) == (T + 50, T)

    def test_only_what_is_named_is_renewed(self, store: Store, steps: Steps) -> None:
        """A runner's other holds lapse as if nothing had been renewed, and so do their leases."""
        steps.submit("a")
        steps.submit("b")
        first, _ = steps.exchange(want=2, hold_for=60).claims
        assert steps.hold(first.token, now=T + 50, hold_for=60).lost == []
        assert (job_in(store, "a").lease, job_in(store, "b").lease) == (T + 50, T)
        assert steps.release(now=T + 60).put_back == 1
        assert statuses_in(store, "b") == ["pending"]

    def test_what_is_lost_is_told(self, steps: Steps) -> None:
        """Tokens that are stored, released or unknown are lost; the others are renewed."""
        for job_id in "abc":
            steps.submit(job_id)
        kept, stored, released = steps.exchange(want=3).claims
        steps.exchange(done(stored), put_back(released))
        tokens = [stored.token, kept.token, "unknown", released.token]
        held = steps.hold(*tokens, now=T + 1, hold_for=60)
        assert held.lost == [stored.token, "unknown", released.token]

    def test_a_cancelled_job_is_told(self, store: Store, steps: Steps) -> None:
        """A job in hand that was cancelled meanwhile is named; its hold isn't lost."""
        steps.submit("a")
        steps.submit("b")
        claims = steps.exchange(want=2).claims
        store.cancel_job("b", now=T)
        held = steps.hold(*(claim.token for claim in claims), now=T + 1, hold_for=60)
        assert (held.lost, held.cancelled) == ([], ["b"])

    def test_a_lapsed_hold_can_be_renewed(self, steps: Steps) -> None:
        """A hold that lapsed but was not released is current, and can be renewed."""
        steps.submit("a")
        claim = steps.claim(hold_for=10)
        assert steps.hold(claim.token, now=T + 50, hold_for=10).lost == []
        assert steps.release(now=T + 55).put_back == 0

    def test_the_clock_is_unix_time(self, store: Store) -> None:
        """now() is unix seconds, by a clock that is right within the hour."""
        assert abs(store.now() - time.time()) < 3600

    def test_a_renewal_of_nothing(self, steps: Steps) -> None:
        """A runner with nothing in hand may say that it is alive."""
        held = steps.hold(now=T, hold_for=60)
        assert (held.lost, held.cancelled) == ([], [])


class Losing(SubmittedContract):
    """release_lost of targets that any runner may take."""

    def test_a_lost_target_is_put_back(self, store: Store, steps: Steps) -> None:
        """A target whose hold lapsed is pending again, its lease is now, and it is tried again."""
        steps.submit("a", 2)
        steps.claim()
        released = steps.release(now=T + 60)
        assert (released.put_back, released.failed, released.settled) == (1, [], [])
        assert statuses_in(store, "a") == ["pending", "pending"]
        assert (job_in(store, "a").status, job_in(store, "a").lease) == (JobStatus.RUNNING, T + 60)
        claim = steps.claim(runner="r2", now=T + 60)
        assert (claim.idx, claim.attempt) == (0, 2)

    def test_a_standing_hold_is_left_alone(self, store: Store, steps: Steps) -> None:
        """Before its hold lapses nothing in flight is released, whoever asks."""
        steps.submit("a")
        claim = steps.claim(hold_for=60)
        before = contents_of(store)
        assert steps.release(now=T + 59.9, hold_for=1).put_back == 0
        assert contents_of(store) == before
        assert steps.exchange(done(claim), now=T + 59.9).stored == [claim.token]

    def test_a_lost_target_goes_last(self, steps: Steps) -> None:
        """A lost target goes to the end of the rotation."""
        steps.submit("a", 1)
        steps.submit("b", 1)
        steps.claim(hold_for=1)
        steps.release(now=T + 5)
        assert [job_id for job_id, _ in steps.drain(now=T + 5)] == ["b", "a"]

    @pytest.mark.parametrize("max_attempts", [1, 2, 3])
    def test_the_last_allowed_loss_fails(
        self, store: Store, steps: Steps, max_attempts: int
    ) -> None:
        """The max_attempts-th loss stores the target failed with "runner lost"; the job goes on."""
        steps.submit("a", 2)
        for loss in range(1, max_attempts):
            steps.claim(now=T + 100 * loss)
            released = steps.release(now=T + 100 * loss + 60, max_attempts=max_attempts)
            assert (released.put_back, released.failed) == (1, [])
        claim = steps.claim(now=T + 1000)
        released = steps.release(now=T + 1060, max_attempts=max_attempts)
        assert (released.put_back, released.failed, released.settled) == (
            0,
            [claim.token],
            [],
        )
        target = targets_in(store, "a")[0]
        assert (target.status, target.error) == (TargetStatus.FAILED, RUNNER_LOST)
        assert (job_in(store, "a").targets_done, job_in(store, "a").lease) == (1, T + 1060)
        assert steps.claim(now=T + 1060).idx == 1

    def test_the_last_loss_may_settle(self, store: Store, steps: Steps) -> None:
        """When the last target is stored as lost, its job gets its terminal status."""
        steps.submit("a", 2)
        steps.exchange(done(steps.claim()))
        steps.claim()
        released = steps.release(now=T + 60, max_attempts=1)
        assert released.settled == [Settled("a", JobStatus.PARTIAL, T)]
        assert job_in(store, "a").status is JobStatus.PARTIAL

    def test_a_job_whose_only_target_is_lost_has_failed(self, steps: Steps) -> None:
        """It ends as failed, not as partial."""
        steps.submit("a")
        steps.claim()
        released = steps.release(now=T + 60, max_attempts=1)
        assert released.settled == [Settled("a", JobStatus.FAILED, T)]

    def test_a_lost_target_is_ready_at_once(self, steps: Steps) -> None:
        """A target that waited once doesn't wait again after its hold lapsed, for any clock."""
        steps.submit("a")
        steps.exchange(later(steps.claim(), T + 50))
        steps.claim(now=T + 50, hold_for=1)
        steps.release(now=T + 60)
        assert steps.claim(now=T + 10).idx == 0

    def test_a_lost_target_counts_as_failed_at_the_end(self, store: Store, steps: Steps) -> None:
        """A job of failed and lost targets has failed; one done target makes it partial."""
        ends: list[tuple[str, Callable[[Claim], Outcome], JobStatus]] = [
            ("a", failed, JobStatus.FAILED),
            ("b", done, JobStatus.PARTIAL),
        ]
        for job_id, outcome, status in ends:
            steps.submit(job_id, 3)
            steps.exchange(failed(steps.claim()))
            steps.claim()
            steps.release(now=T + 60, max_attempts=1)
            answer = steps.exchange(outcome(steps.claim()))
            assert answer.settled == [Settled(job_id, status, T)]
            assert job_in(store, job_id).status == status

    def test_only_losses_count(self, steps: Steps) -> None:
        """Put-backs and retries are starts, but no losses."""
        steps.submit("a")
        claim = steps.retry(put_back(steps.claim()))
        claim = steps.retry(later(claim, T))
        assert claim.attempt == 3
        assert steps.release(now=T + 60, max_attempts=2).put_back == 1

    def test_losses_are_counted_by_target(self, steps: Steps) -> None:
        """A target's losses don't count against the next target."""
        steps.submit("a", 2)
        steps.claim()
        steps.release(now=T + 60, max_attempts=2)
        steps.exchange(done(steps.claim(now=T + 60)), now=T + 60)
        steps.claim(now=T + 60)
        assert steps.release(now=T + 120, max_attempts=2).put_back == 1

    def test_a_limit_bounds_one_release(self, steps: Steps) -> None:
        """At most limit jobs are looked at in one call; further calls do the rest."""
        for number in range(5):
            steps.submit(f"j{number}")
        steps.exchange(want=5)
        counts = [steps.release(now=T + 60, limit=2).put_back for _ in range(4)]
        assert counts == [2, 2, 1, 0]

    def test_releasers_share_the_work(self, steps: Steps) -> None:
        """Several that look for lost runners at once put each target back once."""
        for number in range(6):
            steps.submit(f"j{number}")
        steps.exchange(want=6)
        released = race(4, lambda _: steps.release(now=T + 60, max_attempts=2))
        assert sum(part.put_back for part in released) == 6
        assert not any(part.failed for part in released)

    def test_nothing_to_release(self, store: Store, steps: Steps) -> None:
        """Jobs that wait for their turn, or are done, are none of its business."""
        steps.submit("a")
        steps.exchange(failed(steps.claim()))
        steps.submit("b", 2)
        before = contents_of(store)
        released = steps.release(now=T + 500)
        assert (released.put_back, released.failed, released.settled) == (0, [], [])
        assert contents_of(store) == before

    def test_a_cancelled_job_in_flight_ends(self, store: Store, steps: Steps) -> None:
        """What a cancelled job left in flight is pending again when its hold lapsed, and stays."""
        steps.submit("a", 2)
        claim = steps.claim()
        store.cancel_job("a", now=T + 1)
        assert steps.release(now=T + 59).put_back == 0
        assert statuses_in(store, "a") == ["running", "pending"]
        released = steps.release(now=T + 60, max_attempts=1)
        assert (released.put_back, released.failed, released.settled) == (0, [], [])
        assert statuses_in(store, "a") == ["pending", "pending"]
        job = job_in(store, "a")
        assert (job.status, job.lease) == (JobStatus.CANCELLED, T + 60)
        answer = steps.exchange(done(claim), want=5, now=T + 61)
        assert (answer.refused, answer.claims) == ([claim.token], [])
