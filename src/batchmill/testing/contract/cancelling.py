"""cancel_job: at once, once, and for good (seed-001, rule 5)."""

from __future__ import annotations

import pytest

from batchmill.records import JobStatus, Settled
from batchmill.testing.contract.base import SubmittedContract
from batchmill.testing.contract.steps import (
    Steps,
    T,
    add_job,
    contents_of,
    done,
    fail_job,
    failed,
    job_in,
    later,
    put_back,
    race,
    statuses_in,
    targets_in,
)
from batchmill.testing.contract.surface import Store


class Cancelling(SubmittedContract):
    """What a cancel sets, and what still comes after it."""

    def test_a_queued_job_ends_at_once(self, store: Store, steps: Steps) -> None:
        """A cancel sets status, error "" and lease, and nothing of the job starts any more."""
        steps.submit("a", 2, now=T - 9)
        assert store.cancel_job("a", now=T + 5.5) == Settled("a", JobStatus.CANCELLED, T - 9)
        job = job_in(store, "a")
        assert (job.status, job.error, job.lease) == (JobStatus.CANCELLED, "", T + 5)
        assert store.count_live_jobs() == 0
        assert steps.drain() == []
        assert statuses_in(store, "a") == ["pending", "pending"]

    def test_the_error_is_emptied(self, store: Store) -> None:
        """A cancel empties the job's error; a job made by hand can be cancelled too."""
        add_job(store, "a")
        store.set_job_status("a", JobStatus.RUNNING, now=T, error="why")
        assert store.cancel_job("a", now=T) == Settled("a", JobStatus.CANCELLED, T)
        assert job_in(store, "a").error == ""

    def test_an_unknown_job_is_not_cancelled(self, store: Store) -> None:
        """Cancelling an unknown job answers None."""
        assert store.cancel_job("nobody", now=T) is None

    @pytest.mark.parametrize("status", [status for status in JobStatus if status.terminal])
    def test_a_terminal_job_stays(self, store: Store, status: JobStatus) -> None:
        """Cancelling a job that has ended answers None and changes nothing, its lease included."""
        add_job(store, "a", status=status)
        before = contents_of(store)
        assert store.cancel_job("a", now=T + 5) is None
        assert contents_of(store) == before

    def test_a_job_that_just_ended_stays(self, store: Store, steps: Steps) -> None:
        """A cancel after the last target was stored is too late (cases.md 8)."""
        steps.submit("a")
        steps.exchange(done(steps.claim()))
        assert store.cancel_job("a", now=T + 5) is None
        assert job_in(store, "a").status is JobStatus.DONE

    @pytest.mark.parametrize("last", [True, False])
    @pytest.mark.parametrize("fate", ["done", "failed"])
    def test_the_target_in_flight_is_stored(
        self, store: Store, steps: Steps, fate: str, last: bool
    ) -> None:
        """What was in flight is stored and counted; the job stays cancelled, settled no more."""
        steps.submit("a", 1 if last else 3)
        claim = steps.claim()
        store.cancel_job("a", now=T + 1)
        outcome = done(claim, "é") if fate == "done" else failed(claim, "broken", "hint")
        answer = steps.exchange(outcome, want=5, now=T + 7.5)
        assert (answer.stored, answer.refused) == ([claim.token], [])
        assert (answer.settled, answer.claims, answer.cancelled) == ([], [], [])
        job, target = job_in(store, "a"), targets_in(store, "a")[0]
        assert (job.status, job.error, job.lease) == (JobStatus.CANCELLED, "", T + 7)
        assert (job.targets_done, target.status.value) == (1, fate)
        assert job.nbytes == store.nbytes() == (2 if fate == "done" else 0)

    @pytest.mark.parametrize("kind", ["later", "put_back", "fail_job"])
    def test_an_unfinished_target_is_pending(self, store: Store, steps: Steps, kind: str) -> None:
        """A target in flight that comes back unfinished is pending and never tried again."""
        steps.submit("a", 2)
        claim = steps.claim()
        store.cancel_job("a", now=T + 1)
        outcome = {
            "later": later(claim, T),
            "put_back": put_back(claim),
            "fail_job": fail_job(claim, "caller unknown"),
        }[kind]
        answer = steps.exchange(outcome, want=5, now=T + 2)
        assert (answer.stored, answer.refused, answer.settled) == ([], [], [])
        assert (answer.claims, answer.cancelled) == ([], [])
        assert statuses_in(store, "a") == ["pending", "pending"]
        assert (job_in(store, "a").status, job_in(store, "a").error) == (JobStatus.CANCELLED, "")
        assert steps.drain(now=T + 500) == []

    def test_the_runner_is_told(self, store: Store, steps: Steps) -> None:
        """An exchange names the cancelled jobs that this runner has in flight, until they end."""
        for job_id in "abc":
            steps.submit(job_id, 2)
        claims = steps.exchange(want=2).claims
        steps.claim(runner="r2")
        for job_id in "bc":
            store.cancel_job(job_id, now=T)
        assert steps.exchange().cancelled == ["b"]
        assert steps.exchange(runner="r2").cancelled == ["c"]
        assert steps.exchange(done(claims[1])).cancelled == []

    def test_a_cancel_settles_once(self, store: Store, steps: Steps) -> None:
        """A second cancel answers None, also while the target is still in flight."""
        steps.submit("a", 2)
        steps.claim()
        assert store.cancel_job("a", now=T) is not None
        before = contents_of(store)
        assert store.cancel_job("a", now=T + 1) is None
        assert contents_of(store) == before

    def test_others_go_on(self, store: Store, steps: Steps) -> None:
        """Cancelling one job leaves the others and their order alone."""
        for job_id in "abc":
            steps.submit(job_id, 2)
        store.cancel_job("b", now=T)
        assert steps.drain() == [("a", 0), ("c", 0), ("a", 1), ("c", 1)]

    def test_many_cancels_settle_once(self, store: Store, steps: Steps) -> None:
        """Of many cancels at once one ends the job, the others come too late."""
        steps.submit("a", 2)
        answers = race(self.capabilities.threads, lambda _: store.cancel_job("a", now=T))
        assert sum(answer is not None for answer in answers) == 1

    def test_a_cancel_and_the_last_store(self, store: Store, steps: Steps) -> None:
        """A cancel beside the store of the last target: one of them ends the job, never both."""
        for number in range(10):
            job_id = f"j{number}"
            steps.submit(job_id)
            outcome = done(steps.claim())

            def act(which: int, job_id: str = job_id, outcome: object = outcome) -> list[Settled]:
                if which == 0:
                    settled = store.cancel_job(job_id, now=T)
                    return [] if settled is None else [settled]
                return list(steps.exchange(outcome).settled)  # type: ignore[arg-type]

            ends = [settled for part in race(2, act) for settled in part]
            assert len(ends) == 1
            assert job_in(store, job_id).status is ends[0].status
            assert statuses_in(store, job_id) == ["done"]
