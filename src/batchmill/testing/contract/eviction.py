"""evict_oldest: what the byte budget removes (seed-000, rule 5)."""

from __future__ import annotations

import pytest

from batchmill.records import JobStatus, TargetStatus
from batchmill.testing.contract.base import Contract, SubmittedContract
from batchmill.testing.contract.steps import (
    Steps,
    T,
    add_finished,
    add_job,
    assert_counters_true,
    done,
    job_in,
    job_of,
    race,
)
from batchmill.testing.contract.surface import Repository, Store


def ids(store: Repository) -> list[str]:
    """The ids of all jobs, sorted."""
    return sorted(job.id for job in store.list_jobs(limit=10_000))


class Eviction(Contract):
    """Which finished jobs go, and when it stops."""

    def test_the_oldest_lease_goes_first(self, store: Repository) -> None:
        """Finished jobs go by lease, oldest first, not by age or order of storing."""
        for job_id, lease in [("c", T + 3), ("a", T + 1), ("d", T + 4), ("b", T + 2)]:
            add_finished(store, job_id, 10, lease=lease)
        assert store.evict_oldest(max_bytes=25) == 2
        assert ids(store) == ["c", "d"]
        store.touch_job("c", now=T + 9)
        assert store.evict_oldest(max_bytes=15) == 1
        assert ids(store) == ["c"]

    def test_the_lease_decides_who_goes_first(self, store: Repository) -> None:
        """A job made long ago but used lately stays longer than a young one not used."""
        store.create_job(
            job_of("old", status=JobStatus.DONE, created_at=T - 999, lease=T + 9, nbytes=10)
        )
        store.create_job(job_of("young", status=JobStatus.DONE, created_at=T, lease=T, nbytes=10))
        assert store.evict_oldest(max_bytes=10) == 1
        assert ids(store) == ["old"]

    def test_ties_go_by_id(self, store: Repository) -> None:
        """Jobs of the same lease go by id, lowest first."""
        for job_id in ("b", "c", "a", "B"):
            add_finished(store, job_id, 10, lease=T)
        assert store.evict_oldest(max_bytes=20) == 2
        assert ids(store) == ["b", "c"]

    def test_it_stops_as_soon_as_the_total_fits(self, store: Repository) -> None:
        """A total equal to the budget fits; one byte less takes one more job."""
        for number in range(4):
            add_finished(store, f"j{number}", 10, lease=T + number)
        assert store.evict_oldest(max_bytes=40) == 0
        assert store.evict_oldest(max_bytes=39) == 1
        assert store.nbytes() == 30

    def test_empty_jobs_on_the_way_go_too(self, store: Repository) -> None:
        """A finished job without bytes goes when it is older than what has to go, else stays."""
        add_finished(store, "a", 0, lease=T)
        add_finished(store, "b", 10, lease=T + 1)
        add_finished(store, "c", 0, lease=T + 2)
        assert store.evict_oldest(max_bytes=0) == 2
        assert ids(store) == ["c"]

    @pytest.mark.parametrize("status", [JobStatus.QUEUED, JobStatus.RUNNING])
    def test_a_live_job_never_goes(self, store: Repository, status: JobStatus) -> None:
        """Queued and running jobs stay, however old and large, also when the total can't fit."""
        add_job(store, "live", status=status, lease=T - 500)
        store.update_target("live", 0, now=T - 500, status=TargetStatus.DONE, result="x" * 100)
        add_finished(store, "done", 10, lease=T)
        assert store.evict_oldest(max_bytes=50) == 1
        assert ids(store) == ["live"]
        assert store.evict_oldest(max_bytes=0) == 0
        assert store.nbytes() == 100

    @pytest.mark.parametrize("status", [status for status in JobStatus if status.terminal])
    def test_every_terminal_status_may_go(self, store: Repository, status: JobStatus) -> None:
        """Done, partial, failed and cancelled jobs all may go."""
        store.create_job(job_of("a", status=status, nbytes=10))
        assert store.evict_oldest(max_bytes=9) == 1
        assert ids(store) == []

    def test_jobs_go_whole(self, store: Repository) -> None:
        """Targets and bytes go with their job; a new job of its id shows nothing of it."""
        add_job(store, "a", 5, status=JobStatus.PARTIAL)
        store.update_target("a", 3, now=T, status=TargetStatus.DONE, result="x" * 10)
        add_finished(store, "b", 4, lease=T + 1)
        assert store.evict_oldest(max_bytes=5) == 1
        assert (store.get_job("a"), store.get_targets("a"), store.nbytes()) == (None, None, 4)
        store.create_job(job_of("a"))
        assert store.get_targets("a") == []
        assert_counters_true(store)

    def test_the_budget_is_in_bytes(self, store: Repository) -> None:
        """The budget counts UTF-8 bytes, not characters."""
        add_job(store, "a", status=JobStatus.DONE)
        store.update_target("a", 0, now=T, status=TargetStatus.DONE, result="é" * 10)
        assert store.evict_oldest(max_bytes=20) == 0
        assert store.evict_oldest(max_bytes=19) == 1

    def test_a_limit_bounds_one_eviction(self, store: Repository) -> None:
        """A limit bounds the jobs of one call; further calls do the rest."""
        for number in range(5):
            add_finished(store, f"j{number}", 10, lease=T + number)
        assert store.evict_oldest(max_bytes=0, limit=0) == 0
        assert store.evict_oldest(max_bytes=0, limit=2) == 2
        assert ids(store) == ["j2", "j3", "j4"]
        assert store.evict_oldest(max_bytes=10, limit=9) == 2

    def test_one_call_evicts_any_number(self, store: Repository) -> None:
        """Without a limit one call evicts as many as it takes, and no more (cases.md 25)."""
        for number in range(70):
            store.create_job(
                job_of(f"j{number:02}", status=JobStatus.DONE, lease=T + number, nbytes=10)
            )
        assert store.evict_oldest(max_bytes=35) == 67
        assert ids(store) == ["j67", "j68", "j69"]

    def test_evictors_share_the_work(self, store: Repository) -> None:
        """Several evictors at once remove no more than one would have."""
        for number in range(40):
            add_finished(store, f"j{number:02}", 10, lease=T + number)
        counts = race(4, lambda _: store.evict_oldest(max_bytes=100))
        assert (sum(counts), len(ids(store)), store.nbytes()) == (30, 10, 100)


class BudgetInExchange(SubmittedContract):
    """The budget that an exchange keeps after storing (seed-001, rule 3)."""

    def _finished(self, steps: Steps, *job_ids: str) -> None:
        for number, job_id in enumerate(job_ids):
            steps.submit(job_id, now=T + number)
            steps.exchange(done(steps.claim(now=T + number), "x" * 10), now=T + number)

    def test_storing_evicts_the_oldest(self, store: Store, steps: Steps) -> None:
        """When a stored result takes the total over the budget, the oldest finished jobs go."""
        self._finished(steps, "a", "b", "c")
        steps.submit("d", 2, now=T + 9)
        claim = steps.claim(now=T + 9)
        steps.exchange(done(claim, "x" * 10), now=T + 9, max_bytes=25)
        assert ids(store) == ["c", "d"]
        assert store.nbytes() == 20

    def test_what_fits_stays(self, store: Store, steps: Steps) -> None:
        """A total equal to the budget evicts nothing."""
        self._finished(steps, "a", "b")
        steps.submit("c")
        steps.exchange(done(steps.claim(), "x" * 10), max_bytes=30)
        assert ids(store) == ["a", "b", "c"]

    def test_a_job_settled_here_stays(self, store: Store, steps: Steps) -> None:
        """A job that ends in an exchange isn't evicted by it, however large it is."""
        self._finished(steps, "a")
        steps.submit("big", now=T - 500)
        claim = steps.claim(now=T - 500)
        answer = steps.exchange(done(claim, "x" * 1000), now=T - 500, max_bytes=10)
        assert [settled.job_id for settled in answer.settled] == ["big"]
        assert ids(store) == ["big"]

    def test_a_live_job_stays(self, store: Store, steps: Steps) -> None:
        """A live job isn't evicted by the exchange that stores its target, or any other."""
        steps.submit("a", 2)
        steps.submit("b", 2)
        answer = steps.exchange(want=2)
        steps.exchange(*(done(claim, "x" * 100) for claim in answer.claims), max_bytes=0)
        assert ids(store) == ["a", "b"]
        assert job_in(store, "a").nbytes == 100
