"""What is stored of an outcome, and how jobs end (seed-001, rules 3 and 4)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from batchmill.errors import InvalidTransition
from batchmill.records import JobStatus, Outcome, Settled, TargetStatus
from batchmill.testing.contract.base import SubmittedContract
from batchmill.testing.contract.steps import (
    Steps,
    T,
    contents_of,
    done,
    fail_job,
    failed,
    job_in,
    later,
    statuses_in,
    targets_in,
    targets_of,
)
from batchmill.testing.contract.surface import Store


class Storing(SubmittedContract):
    """Done and failed outcomes."""

    def test_a_done_target(self, store: Store, steps: Steps) -> None:
        """A done target has its result; counters rise by it and the lease is now."""
        steps.submit("a", 2)
        claim = steps.claim()
        answer = steps.exchange(done(claim, '{"content":"é"}'), now=T + 4.5)
        assert (answer.stored, answer.refused, answer.unstorable) == ([claim.token], [], [])
        target, job = targets_in(store, "a")[0], job_in(store, "a")
        assert (target.status, target.result) == (TargetStatus.DONE, '{"content":"é"}')
        assert (target.error, target.hint) == (None, None)
        assert (job.targets_done, job.nbytes, job.lease) == (1, 16, T + 4)

    def test_a_failed_target(self, store: Store, steps: Steps) -> None:
        """A failed target has its error and hint, no result, and counts as finished."""
        steps.submit("a", 2)
        steps.exchange(failed(steps.claim(), "not found", "check the address"))
        target, job = targets_in(store, "a")[0], job_in(store, "a")
        assert (target.status, target.result) == (TargetStatus.FAILED, None)
        assert (target.error, target.hint) == ("not found", "check the address")
        assert (job.targets_done, job.nbytes, job.error) == (1, 0, "")

    def test_a_set_is_stored_at_once(self, store: Store, steps: Steps) -> None:
        """Many outcomes of one exchange are all stored and told in their order."""
        for job_id in "abc":
            steps.submit(job_id, 2)
        claims = steps.exchange(want=3).claims
        answer = steps.exchange(done(claims[2]), failed(claims[0]), later(claims[1], T))
        assert answer.stored == [claims[2].token, claims[0].token]
        firsts = [statuses_in(store, job_id)[0] for job_id in "abc"]
        assert firsts == ["failed", "pending", "done"]

    @pytest.mark.parametrize("bad", ["a\x00b", "\ud83d"])
    @pytest.mark.parametrize("field", ["result", "error", "hint"])
    def test_what_cannot_be_stored_fails(
        self, store: Store, steps: Steps, field: str, bad: str
    ) -> None:
        """An unstorable text makes that target failed with a clear error; others are stored."""
        steps.submit("a", 2)
        steps.submit("b", 2)
        claim, other = steps.exchange(want=2).claims
        outcome: Outcome = {
            "result": done(claim, bad),
            "error": failed(claim, bad),
            "hint": failed(claim, "error", bad),
        }[field]
        answer = steps.exchange(outcome, done(other))
        assert set(answer.stored) == {claim.token, other.token}
        assert answer.unstorable == [claim.token]
        target = targets_in(store, "a")[0]
        assert (target.status, target.result) == (TargetStatus.FAILED, None)
        assert target.error is not None
        assert field in target.error
        assert statuses_in(store, "b") == ["done", "pending"]
        assert steps.exchange(want=5).claims[0].job_id == "a"


class Settling(SubmittedContract):
    """The terminal status, once."""

    @pytest.mark.parametrize(
        ("fates", "status"),
        [
            ("d", JobStatus.DONE),
            ("dd", JobStatus.DONE),
            ("f", JobStatus.FAILED),
            ("ff", JobStatus.FAILED),
            ("df", JobStatus.PARTIAL),
            ("fd", JobStatus.PARTIAL),
            ("ddf", JobStatus.PARTIAL),
        ],
    )
    def test_the_last_target_settles(
        self, store: Store, steps: Steps, fates: str, status: JobStatus
    ) -> None:
        """All done is done, all failed is failed, a mix partial; told once, by the last store."""
        steps.submit("a", len(fates), now=T - 9)
        told: list[Settled] = []
        for number, fate in enumerate(fates):
            assert job_in(store, "a").status.live
            claim = steps.claim()
            answer = steps.exchange(done(claim) if fate == "d" else failed(claim))
            told += answer.settled
            assert len(told) == (number == len(fates) - 1)
        assert told == [Settled("a", status, T - 9)]
        assert (job_in(store, "a").status, job_in(store, "a").error) == (status, "")
        assert store.count_live_jobs() == 0

    def test_a_retry_is_no_failure(self, store: Store, steps: Steps) -> None:
        """A target that was busy before it was done leaves the job done."""
        steps.submit("a")
        claim = steps.retry(later(steps.claim(), T))
        steps.exchange(done(claim))
        assert job_in(store, "a").status is JobStatus.DONE

    def test_several_jobs_settle_at_once(self, steps: Steps) -> None:
        """Every job whose last target an exchange stored is in its settled."""
        for job_id in "abc":
            steps.submit(job_id)
        claims = steps.exchange(want=3).claims
        answer = steps.exchange(done(claims[0]), failed(claims[1]), later(claims[2], T))
        settled = [(settled.job_id, settled.status) for settled in answer.settled]
        assert settled == [("a", JobStatus.DONE), ("b", JobStatus.FAILED)]

    def test_fail_job_ends_the_job(self, store: Store, steps: Steps) -> None:
        """fail_job ends a job as failed with its error, its targets pending, nothing stored."""
        steps.submit("a", 3)
        steps.exchange(done(steps.claim(), "é"))
        claim = steps.claim()
        answer = steps.exchange(fail_job(claim, "caller unknown"), want=5, now=T + 5.5)
        assert answer.settled == [Settled("a", JobStatus.FAILED, T)]
        assert (answer.stored, answer.refused, answer.claims) == ([], [], [])
        job = job_in(store, "a")
        assert (job.status, job.error, job.lease) == (JobStatus.FAILED, "caller unknown", T + 5)
        assert (job.targets_done, job.nbytes) == (1, 2)
        assert statuses_in(store, "a") == ["done", "pending", "pending"]
        assert steps.exchange(done(claim)).refused == [claim.token]


class ByHand(SubmittedContract):
    """update_target, set_job_status and put_targets on a submitted job (design.md section 3)."""

    @pytest.mark.parametrize("status", list(TargetStatus))
    def test_a_target_in_flight_is_its_holders(
        self, store: Store, steps: Steps, status: TargetStatus
    ) -> None:
        """Writing a held target by hand is InvalidTransition and changes nothing."""
        steps.submit("a", 2)
        claim = steps.claim()
        before = contents_of(store)
        with pytest.raises(InvalidTransition):
            store.update_target("a", 0, now=T + 9, status=status)
        assert contents_of(store) == before
        assert steps.exchange(done(claim)).stored == [claim.token]

    def test_only_a_claim_starts_a_target(self, store: Store, steps: Steps) -> None:
        """Making a submitted job's target running by hand is InvalidTransition."""
        steps.submit("a", 2)
        with pytest.raises(InvalidTransition):
            store.update_target("a", 1, now=T, status=TargetStatus.RUNNING)
        assert statuses_in(store, "a") == ["pending", "pending"]

    def test_targets_of_a_submit_are_fixed(self, store: Store, steps: Steps) -> None:
        """Adding targets to a submitted job is InvalidTransition."""
        steps.submit("a", 2)
        with pytest.raises(InvalidTransition):
            store.put_targets("a", [replace(targets_of("a", 1)[0], idx=2)])
        assert len(targets_in(store, "a")) == 2

    def test_a_target_stored_by_hand_moves_on(self, store: Store, steps: Steps) -> None:
        """The next target stored by hand isn't claimed; the one after it is, in its turn."""
        steps.submit("a", 3)
        steps.submit("b", 1)
        store.update_target("a", 0, now=T, status=TargetStatus.DONE, result="x")
        assert steps.drain() == [("b", 0), ("a", 1), ("a", 2)]
        assert job_in(store, "a").status is JobStatus.DONE

    def test_a_later_target_stored_by_hand_is_passed(self, store: Store, steps: Steps) -> None:
        """A later target stored by hand is passed over when its turn would come."""
        steps.submit("a", 4)
        claim = steps.claim()
        store.update_target("a", 1, now=T, status=TargetStatus.FAILED, error="e")
        store.update_target("a", 3, now=T, status=TargetStatus.DONE)
        following = steps.exchange(done(claim), want=1).claims[0]
        assert following.idx == 2
        answer = steps.exchange(done(following))
        assert [settled.status for settled in answer.settled] == [JobStatus.PARTIAL]

    def test_only_its_own_targets_decide_what_follows(self, store: Store, steps: Steps) -> None:
        """A target stored by hand is passed over although another job's same one is pending."""
        steps.submit("a", 3)
        claim = steps.claim()
        steps.submit("b", 3)
        store.update_target("a", 1, now=T, status=TargetStatus.DONE)
        claims = steps.exchange(done(claim), want=5).claims
        assert [(each.job_id, each.idx) for each in claims] == [("b", 0), ("a", 2)]

    def test_the_last_in_flight_settles(self, store: Store, steps: Steps) -> None:
        """When all but the target in flight were stored by hand, storing it settles the job."""
        steps.submit("a", 2)
        claim = steps.claim()
        store.update_target("a", 1, now=T, status=TargetStatus.FAILED, error="e")
        assert job_in(store, "a").status.live
        assert steps.exchange(failed(claim)).settled == [Settled("a", JobStatus.FAILED, T)]

    @pytest.mark.parametrize(
        ("first", "last", "status"),
        [
            (TargetStatus.DONE, TargetStatus.DONE, JobStatus.DONE),
            (TargetStatus.DONE, TargetStatus.FAILED, JobStatus.PARTIAL),
            (TargetStatus.FAILED, TargetStatus.FAILED, JobStatus.FAILED),
        ],
    )
    def test_the_last_by_hand_settles(
        self,
        store: Store,
        steps: Steps,
        first: TargetStatus,
        last: TargetStatus,
        status: JobStatus,
    ) -> None:
        """Storing the last target by hand gives a submitted job its terminal status."""
        steps.submit("a", 2)
        store.update_target("a", 1, now=T, status=first)
        store.update_target("a", 0, now=T + 5, status=last)
        job = job_in(store, "a")
        assert (job.status, job.lease, store.count_live_jobs()) == (status, T + 5, 0)
        assert steps.drain() == []

    def test_targets_by_hand_in_order_count_at_the_end(self, store: Store, steps: Steps) -> None:
        """A target that failed by hand in its turn counts when the last one settles the job."""
        steps.submit("a", 2)
        store.update_target("a", 0, now=T, status=TargetStatus.FAILED, error="e")
        store.update_target("a", 1, now=T, status=TargetStatus.DONE)
        assert job_in(store, "a").status is JobStatus.PARTIAL

    def test_a_stored_outcome_has_its_own_bytes(self, store: Store, steps: Steps) -> None:
        """What a runner stored is cut by its bytes in pages, and rewritten by the difference."""
        steps.submit("a", 2)
        steps.exchange(done(steps.claim(), "é😀"))
        steps.exchange(done(steps.claim(), "é😀"))
        assert len(store.get_targets("a", max_bytes=11) or ()) == 1
        assert len(store.get_targets("a", max_bytes=12) or ()) == 2
        store.update_target("a", 0, now=T, status=TargetStatus.DONE, result="x")
        assert (job_in(store, "a").nbytes, store.nbytes()) == (7, 7)

    def test_a_rewrite_by_hand_counts_at_the_end(self, store: Store, steps: Steps) -> None:
        """A finished target re-written the other way counts as what it is in the end."""
        steps.submit("a", 2)
        steps.exchange(failed(steps.claim()))
        store.update_target("a", 0, now=T, status=TargetStatus.DONE, result="x")
        answer = steps.exchange(done(steps.claim()))
        assert [settled.status for settled in answer.settled] == [JobStatus.DONE]

    @pytest.mark.parametrize("status", [status for status in JobStatus if status.terminal])
    def test_a_terminal_status_by_hand_acts_as_a_cancel(
        self, store: Store, steps: Steps, status: JobStatus
    ) -> None:
        """A terminal status set by hand stays, the target in flight is stored, none starts."""
        steps.submit("a", 2)
        steps.submit("b", 2)
        claim = steps.claim()
        for job_id in "ab":
            store.set_job_status(job_id, status, now=T + 1, error="by hand")
        answer = steps.exchange(done(claim), want=5, now=T + 2)
        assert (answer.stored, answer.settled, answer.claims) == ([claim.token], [], [])
        assert statuses_in(store, "a") == ["done", "pending"]
        assert (job_in(store, "a").status, job_in(store, "a").error) == (status, "by hand")
