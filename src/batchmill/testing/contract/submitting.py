"""submit_job: one atomic step from the lookup to the turn (seed-001, rule 1)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from batchmill.errors import (
    Busy,
    CallerBusy,
    InvalidInput,
    JobExists,
    NoTargets,
    TooManyTargets,
)
from batchmill.records import Admission, BatchTarget, JobStatus, Limits
from batchmill.testing.contract.base import SubmittedContract
from batchmill.testing.contract.steps import (
    HOUR,
    WIDE,
    Steps,
    T,
    contents_of,
    done,
    fail_job,
    failed,
    job_in,
    job_of,
    race,
    targets_in,
    targets_of,
)
from batchmill.testing.contract.surface import Store


class Submitting(SubmittedContract):
    """What is stored, and what is reused."""

    def test_job_and_targets_are_stored(self, store: Store, steps: Steps) -> None:
        """A submit stores the job as given, queued, and its targets, pending, before it returns."""
        assert steps.submit("a", 3) == Admission("a", reused=False, rejected=None)
        assert store.get_job("a") == job_of("a", total=3)
        assert targets_in(store, "a") == targets_of("a", 3)
        assert (store.count_live_jobs("ada"), store.count_live_jobs()) == (1, 1)

    def test_nothing_to_do_is_rejected(self, store: Store, steps: Steps) -> None:
        """A submit without targets is NoTargets, also when its key would be answered."""
        steps.submit("a", key="k")
        rejected = steps.submit("b", 0, key="k", now=T + 5)
        assert rejected == Admission(None, reused=False, rejected=NoTargets)
        assert job_in(store, "a").lease == T

    def test_the_same_key_reuses(self, store: Store, steps: Steps) -> None:
        """The same key answers with the job that has it, bumps its lease, and stores nothing."""
        steps.submit("a", 2, key="k")
        again = steps.submit("b", 2, key="k", now=T + 5.5)
        assert again == Admission("a", reused=True, rejected=None)
        assert store.get_job("b") is None
        assert job_in(store, "a") == replace(job_of("a", key="k", total=2), lease=T + 5)
        assert store.count_live_jobs() == 1

    def test_a_reused_job_keeps_its_place(self, steps: Steps) -> None:
        """A reused submit changes nothing in the rotation."""
        steps.submit("a", key="k")
        steps.submit("b")
        steps.submit("c", key="k")
        assert steps.drain() == [("a", 0), ("b", 0)]

    def test_a_replay_is_before_the_caps(self, steps: Steps) -> None:
        """A key is answered even when every cap is full (cases.md 9b)."""
        steps.submit("a", 3, key="k")
        full = Limits(targets_per_job=1, jobs_per_caller=1, jobs_total=1)
        assert steps.submit("b", 3, key="k", limits=full).job_id == "a"

    def test_a_submit_belongs_to_its_caller(self, steps: Steps) -> None:
        """The same key of another caller makes another job (cases.md 9b)."""
        steps.submit("a", key="k")
        other = steps.submit("b", key="k", caller="bob")
        assert (other.job_id, other.reused) == ("b", False)

    def test_a_finished_job_is_reused(self, steps: Steps) -> None:
        """A job that is done or partial answers its key."""
        steps.submit("a", 2, key="k")
        steps.exchange(done(steps.claim()))
        steps.exchange(failed(steps.claim()))
        assert steps.submit("b", key="k").job_id == "a"

    def test_a_failed_job_does_not_block(self, steps: Steps) -> None:
        """After a failed job the same key makes a new one."""
        steps.submit("a", key="k")
        steps.exchange(failed(steps.claim()))
        assert steps.submit("b", key="k") == Admission("b", reused=False, rejected=None)

    def test_a_cancelled_job_does_not_block(self, store: Store, steps: Steps) -> None:
        """After a cancelled job the same key makes a new one."""
        steps.submit("a", key="k")
        store.cancel_job("a", now=T)
        assert steps.submit("b", key="k") == Admission("b", reused=False, rejected=None)

    def test_a_key_lasts_as_long_as_the_lease(self, store: Store, steps: Steps) -> None:
        """After lease + ttl the same key makes a new job, beside the old one (cases.md S1)."""
        ten = timedelta(seconds=10)
        steps.submit("a", key="k")
        assert steps.submit("b", key="k", now=T + 9, ttl=ten).job_id == "a"
        assert steps.submit("c", key="k", now=T + 18, ttl=ten).job_id == "a"
        assert steps.submit("d", key="k", now=T + 28, ttl=ten).job_id == "d"
        assert store.get_job("a") is not None

    def test_a_submitted_id_is_taken_once(self, store: Store, steps: Steps) -> None:
        """A new job under an id that is taken is JobExists, and nothing changes."""
        steps.submit("a", 2)
        before = contents_of(store)
        with pytest.raises(JobExists):
            steps.submit("a", 3, key="other")
        assert contents_of(store) == before
        assert steps.drain() == [("a", 0), ("a", 1)]

    def test_half_a_job_is_never_stored(self, store: Store) -> None:
        """When one target can't be stored, there is no job and no target at all (cases.md S7)."""
        targets = targets_of("a", 10)
        targets[6] = BatchTarget("a", 6, "u\x00", "{}")
        with pytest.raises(InvalidInput):
            store.submit_job(
                job_of("a", total=10),
                targets,
                queue="default",
                home=None,
                limits=WIDE,
                now=T,
                ttl=HOUR,
            )
        assert (store.get_job("a"), store.get_targets("a")) == (None, None)
        assert store.count_live_jobs() == 0

    def test_a_foreign_transaction_needs_the_capability(self, store: Store) -> None:
        """A store that can't join a transaction says so and names the argument."""
        if self.capabilities.within:
            pytest.skip("this store joins transactions; its own tests say how")
        with pytest.raises(InvalidInput, match="within"):
            store.submit_job(
                job_of("a", total=1),
                targets_of("a", 1),
                queue="default",
                home=None,
                limits=WIDE,
                now=T,
                ttl=HOUR,
                within=object(),
            )
        assert store.get_job("a") is None


class Caps(SubmittedContract):
    """The three caps, in their order, and exact."""

    def test_targets_per_job(self, store: Store, steps: Steps) -> None:
        """As many targets as the cap are taken, one more is TooManyTargets and stores nothing."""
        limits = replace(WIDE, targets_per_job=3)
        assert steps.submit("a", 4, limits=limits).rejected is TooManyTargets
        assert store.get_job("a") is None
        assert steps.submit("a", 3, limits=limits).job_id == "a"

    def test_jobs_per_caller(self, store: Store, steps: Steps) -> None:
        """As many live jobs as the cap are taken from a caller, the next is CallerBusy."""
        limits = replace(WIDE, jobs_per_caller=2)
        steps.submit("a", limits=limits)
        assert steps.submit("b", limits=limits).job_id == "b"
        assert steps.submit("c", limits=limits) == Admission(None, False, CallerBusy)
        assert store.get_job("c") is None
        assert steps.submit("d", caller="bob", limits=limits).job_id == "d"

    def test_jobs_total(self, store: Store, steps: Steps) -> None:
        """As many live jobs as the cap are taken in all, the next is Busy."""
        limits = replace(WIDE, jobs_total=2)
        steps.submit("a", limits=limits)
        assert steps.submit("b", caller="bob", limits=limits).job_id == "b"
        assert steps.submit("c", caller="eve", limits=limits) == Admission(None, False, Busy)
        assert store.get_job("c") is None

    def test_the_order_of_the_caps(self, steps: Steps) -> None:
        """Too many targets comes before a busy caller, which comes before a full store."""
        limits = Limits(targets_per_job=1, jobs_per_caller=1, jobs_total=1)
        steps.submit("a", limits=limits)
        rejections = [
            steps.submit("b", 2, limits=limits).rejected,
            steps.submit("c", limits=limits).rejected,
            steps.submit("d", caller="bob", limits=limits).rejected,
        ]
        assert rejections == [TooManyTargets, CallerBusy, Busy]

    def test_jobs_made_by_hand_count(self, store: Store, steps: Steps) -> None:
        """Live jobs made by create_job count against the caps: statuses are what counts."""
        store.create_job(job_of("hand"))
        store.create_job(job_of("ended", status=JobStatus.DONE))
        assert steps.submit("a", limits=replace(WIDE, jobs_per_caller=1)).rejected is CallerBusy
        assert steps.submit("a", limits=replace(WIDE, jobs_per_caller=2)).job_id == "a"

    @pytest.mark.parametrize("how", ["done", "failed", "cancelled", "fail_job", "deleted"])
    def test_an_ended_job_frees_its_place(self, store: Store, steps: Steps, how: str) -> None:
        """A job counts against the caps until it has ended, and no longer."""
        limits = Limits(targets_per_job=1, jobs_per_caller=1, jobs_total=1)
        steps.submit("a", limits=limits)
        claim = steps.claim()
        assert steps.submit("b", limits=limits).rejected is CallerBusy
        if how == "cancelled":
            store.cancel_job("a", now=T)
        elif how == "deleted":
            store.delete_job("a")
        else:
            outcomes = {
                "done": done(claim),
                "failed": failed(claim),
                "fail_job": fail_job(claim, "e"),
            }
            steps.exchange(outcomes[how])
        assert steps.submit("b", limits=limits).job_id == "b"


ROUNDS = range(10)


class SubmitRaces(SubmittedContract):
    """Submits from many threads at once, again and again (cases.md 9)."""

    def test_one_key_makes_one_job(self, store: Store, steps: Steps) -> None:
        """The same key from many threads makes one job; all get its id, one of them not reused."""
        for turn in ROUNDS:

            def submit(number: int, turn: int = turn) -> Admission:
                return steps.submit(f"j{turn}-{number}", 3, key=f"k{turn}")

            answers = race(self.capabilities.threads, submit)
            assert len({answer.job_id for answer in answers}) == 1
            assert sum(not answer.reused for answer in answers) == 1
        assert len(store.list_jobs()) == len(ROUNDS)
        assert sum(store.stats().targets.values()) == 3 * len(ROUNDS)

    def test_the_total_cap_is_exact(self, store: Store, steps: Steps) -> None:
        """Of many callers at once exactly as many as jobs_total get in."""
        for turn in ROUNDS:

            def submit(number: int, turn: int = turn) -> Admission:
                limits = replace(WIDE, jobs_total=3 * (turn + 1))
                return steps.submit(f"j{turn}-{number}", caller=f"c{number}", limits=limits)

            answers = race(self.capabilities.threads, submit)
            assert sum(answer.job_id is not None for answer in answers) == 3
            assert {answer.rejected for answer in answers} == {None, Busy}
            assert store.count_live_jobs() == 3 * (turn + 1)

    def test_the_cap_of_a_caller_is_exact(self, store: Store, steps: Steps) -> None:
        """Of many submits of one caller at once exactly as many as jobs_per_caller get in."""
        for turn in ROUNDS:

            def submit(number: int, turn: int = turn) -> Admission:
                limits = replace(WIDE, jobs_per_caller=2)
                return steps.submit(f"j{turn}-{number}", caller=f"c{turn}", limits=limits)

            answers = race(self.capabilities.threads, submit)
            assert sum(answer.job_id is not None for answer in answers) == 2
            assert {answer.rejected for answer in answers} == {None, CallerBusy}
            assert store.count_live_jobs(f"c{turn}") == 2
