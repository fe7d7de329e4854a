"""sweep: what time removes (seed-000, rule 4)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from batchmill.records import JobStatus
from batchmill.testing.contract.base import Contract, SubmittedContract
from batchmill.testing.contract.steps import (
    HOUR,
    Steps,
    T,
    add_finished,
    add_job,
    assert_counters_true,
    done,
    job_in,
    job_of,
    race,
    statuses_in,
)
from batchmill.testing.contract.surface import Repository, Store

TEN = timedelta(seconds=10)


def ids(store: Repository) -> set[str]:
    """The ids of all jobs."""
    return {job.id for job in store.list_jobs(limit=10_000)}


class Sweeping(Contract):
    """What goes, what stays, and what is left of it."""

    @pytest.mark.parametrize(
        ("now", "ttl", "gone"),
        [
            (T + 9, TEN, False),
            (T + 9.999, TEN, False),
            (T + 10, TEN, True),
            (T + 11, TEN, True),
            (T + 10, timedelta(seconds=9, milliseconds=1), True),
            (T + 10, timedelta(seconds=10, milliseconds=1), False),
            (T, timedelta(0), True),
            (T - 1, timedelta(0), False),
        ],
    )
    def test_a_job_goes_when_its_lease_is_out(
        self, store: Repository, now: float, ttl: timedelta, gone: bool
    ) -> None:
        """A job goes exactly when lease + ttl <= now: now floored, a ttl's fraction rounded up."""
        add_job(store, "a", status=JobStatus.DONE)
        assert store.sweep(now=now, ttl=ttl) == int(gone)
        assert (store.get_job("a") is None) is gone

    def test_the_longest_lifetime_keeps_all(self, store: Repository) -> None:
        """timedelta.max, a fraction and all, is a ttl like any other: nothing goes."""
        add_job(store, "a")
        assert store.sweep(now=T + 10**11, ttl=timedelta.max) == 0
        found = store.find_job_by_idem_key("ada", "a", now=T + 10**11, ttl=timedelta.max)
        assert (ids(store), found) == ({"a"}, "a")

    @pytest.mark.parametrize("status", list(JobStatus))
    def test_every_status_goes(self, store: Repository, status: JobStatus) -> None:
        """A job whose lease is out goes whatever its status, live ones too."""
        add_job(store, "a", status=status)
        assert store.sweep(now=T + 10, ttl=TEN) == 1
        assert (store.get_job("a"), store.count_live_jobs()) == (None, 0)

    def test_the_lease_counts_not_the_age(self, store: Repository) -> None:
        """An old job that was used lately stays; a young one whose lease is out goes."""
        store.create_job(job_of("old", created_at=T - 10_000, lease=T + 100))
        store.create_job(job_of("young", created_at=T + 90, lease=T))
        assert store.sweep(now=T + 100, ttl=TEN) == 1
        assert ids(store) == {"old"}

    def test_nothing_is_left_of_a_swept_job(self, store: Repository) -> None:
        """Targets and bytes go with the job; a new job of its id shows nothing (cases.md 16)."""
        for job_id in ("a", "b", "c"):
            add_finished(store, job_id, 100, lease=T)
        add_finished(store, "d", 7, lease=T + 50)
        assert store.sweep(now=T + 50, ttl=TEN) == 3
        assert (store.get_targets("a"), store.nbytes()) == (None, 7)
        store.create_job(job_of("a", total=1))
        assert store.get_targets("a") == []
        assert sum(store.stats().targets.values()) == 1
        assert_counters_true(store)

    def test_nothing_to_sweep(self, store: Repository) -> None:
        """A sweep that finds nothing answers 0, also on an empty store."""
        assert store.sweep(now=T, ttl=HOUR) == 0
        add_job(store, "a")
        assert store.sweep(now=T, ttl=HOUR) == 0
        assert ids(store) == {"a"}

    def test_a_limit_bounds_one_sweep(self, store: Repository) -> None:
        """A limit bounds the jobs of one call; further calls do the rest."""
        for number in (3, 1, 2, 0):
            add_job(store, f"j{number}", lease=T + number)
        assert store.sweep(now=T + 100, ttl=TEN, limit=0) == 0
        assert store.sweep(now=T + 100, ttl=TEN, limit=3) == 3
        assert ids(store) == {"j3"}
        assert store.sweep(now=T + 100, ttl=TEN, limit=3) == 1

    def test_a_bounded_sweep_takes_the_oldest_lease(self, store: Repository) -> None:
        """A bounded sweep takes jobs by lease, oldest first, ties by id."""
        for job_id, lease in [("a", T), ("c", T - 2), ("b", T - 2), ("d", T - 3)]:
            add_job(store, job_id, lease=lease)
        assert store.sweep(now=T + 100, ttl=TEN, limit=2) == 2
        assert ids(store) == {"a", "c"}

    def test_one_call_sweeps_any_number(self, store: Repository) -> None:
        """Without a limit one call removes all, in however many steps (cases.md 25)."""
        for number in range(70):
            store.create_job(job_of(f"j{number}", nbytes=1))
        assert store.sweep(now=T + 10, ttl=TEN) == 70
        assert (ids(store), store.nbytes()) == (set(), 0)

    def test_sweepers_share_the_work(self, store: Repository) -> None:
        """What several sweepers at once say they deleted adds up, none counted twice."""
        for number in range(40):
            add_job(store, f"j{number}")
        counts = race(4, lambda _: store.sweep(now=T + 10, ttl=TEN))
        assert sum(counts) == 40
        assert ids(store) == set()


class SweepingSubmitted(SubmittedContract):
    """Sweeps beside runners."""

    def test_a_waiting_job_goes_from_the_rotation(self, store: Store, steps: Steps) -> None:
        """A swept job is claimed no more and counts against no cap."""
        steps.submit("a")
        steps.submit("b", now=T + 50)
        assert store.sweep(now=T + 50, ttl=TEN) == 1
        assert steps.drain(now=T + 50) == [("b", 0)]

    def test_a_standing_hold_keeps_its_job(self, store: Store, steps: Steps) -> None:
        """A job whose hold still stands isn't swept, however old its lease (cases.md 11)."""
        steps.submit("a")
        claim = steps.claim(hold_for=60)
        assert store.sweep(now=T + 59.9, ttl=TEN) == 0
        assert steps.exchange(done(claim), now=T + 59.9).stored == [claim.token]
        assert job_in(store, "a").status is JobStatus.DONE

    def test_a_standing_hold_keeps_its_job_when_others_go(self, store: Store, steps: Steps) -> None:
        """A sweep that finds jobs to delete still leaves alone what is held."""
        steps.submit("a")
        claim = steps.claim(hold_for=1000)
        steps.submit("b")
        assert store.sweep(now=T + 500, ttl=TEN) == 1
        assert ids(store) == {"a"}
        assert steps.exchange(done(claim), now=T + 500).stored == [claim.token]

    def test_a_lapsed_hold_keeps_nothing(self, store: Store, steps: Steps) -> None:
        """Once its hold has lapsed a job is swept, and a late outcome is refused."""
        steps.submit("a")
        claim = steps.claim(hold_for=60)
        assert store.sweep(now=T + 60, ttl=TEN) == 1
        answer = steps.exchange(done(claim), now=T + 60)
        assert (answer.refused, answer.stored, store.get_job("a")) == ([claim.token], [], None)

    def test_a_renewed_hold_keeps_its_job(self, store: Store, steps: Steps) -> None:
        """A hold that was renewed keeps its job until the renewed hold lapses."""
        steps.submit("a")
        claim = steps.claim(hold_for=60)
        steps.hold(claim.token, now=T + 50, hold_for=60)
        assert store.sweep(now=T + 100, ttl=TEN) == 0
        assert store.sweep(now=T + 110, ttl=TEN) == 1

    def test_a_cancelled_job_in_flight_is_kept_too(self, store: Store, steps: Steps) -> None:
        """A cancelled job with its target still held isn't swept before the hold lapses."""
        steps.submit("a")
        claim = steps.claim(hold_for=60)
        store.cancel_job("a", now=T + 1)
        assert store.sweep(now=T + 30, ttl=TEN) == 0
        steps.exchange(done(claim), now=T + 30)
        assert statuses_in(store, "a") == ["done"]
        assert store.sweep(now=T + 40, ttl=TEN) == 1
