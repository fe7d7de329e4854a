"""Which job answers an idempotency key (seed-001, rule 1; design.md section 3)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from batchmill.records import JobStatus
from batchmill.testing.contract.base import Contract
from batchmill.testing.contract.steps import HOUR, T, contents_of, job_of
from batchmill.testing.contract.surface import Repository

ANSWERING = {JobStatus.QUEUED, JobStatus.RUNNING, JobStatus.DONE, JobStatus.PARTIAL}


class Lookups(Contract):
    """find_job_by_idem_key."""

    @pytest.mark.parametrize("status", list(JobStatus))
    def test_failed_and_cancelled_do_not_answer(self, store: Repository, status: JobStatus) -> None:
        """Queued, running, done and partial jobs answer a key; failed and cancelled don't."""
        store.create_job(job_of("a", key="k", status=status))
        found = store.find_job_by_idem_key("ada", "k", now=T, ttl=HOUR)
        assert found == ("a" if status in ANSWERING else None)

    def test_an_unknown_key_is_none(self, store: Repository) -> None:
        """A key that no job has answers None."""
        store.create_job(job_of("a", key="k"))
        assert store.find_job_by_idem_key("ada", "other", now=T, ttl=HOUR) is None

    def test_a_key_belongs_to_its_caller(self, store: Repository) -> None:
        """Two callers' equal keys are two keys (cases.md 9b)."""
        store.create_job(job_of("a", key="k"))
        assert store.find_job_by_idem_key("bob", "k", now=T, ttl=HOUR) is None
        store.create_job(job_of("b", key="k", caller="bob"))
        assert store.find_job_by_idem_key("bob", "k", now=T, ttl=HOUR) == "b"
        assert store.find_job_by_idem_key("ada", "k", now=T, ttl=HOUR) == "a"

    def test_the_newest_answers(self, store: Repository) -> None:
        """Of several jobs with the key the newest answers, whatever order they were stored in."""
        for job_id, created_at in [("old", T - 9), ("new", T), ("mid", T - 5)]:
            store.create_job(job_of(job_id, key="k", created_at=created_at))
        assert store.find_job_by_idem_key("ada", "k", now=T, ttl=HOUR) == "new"

    @pytest.mark.parametrize("status", [JobStatus.FAILED, JobStatus.CANCELLED])
    def test_a_newer_failure_hides_nothing(self, store: Repository, status: JobStatus) -> None:
        """A newer failed or cancelled job doesn't keep an older done one from answering."""
        store.create_job(job_of("old", key="k", status=JobStatus.DONE))
        store.create_job(job_of("new", key="k", status=status, created_at=T + 1))
        assert store.find_job_by_idem_key("ada", "k", now=T + 1, ttl=HOUR) == "old"

    @pytest.mark.parametrize(
        ("now", "ttl", "answers"),
        [
            (T + 9, timedelta(seconds=10), True),
            (T + 9.9, timedelta(seconds=10), True),
            (T + 10, timedelta(seconds=10), False),
            (T + 10, timedelta(seconds=10, microseconds=1), True),
            (T + 11, timedelta(seconds=10, microseconds=1), False),
            (T, timedelta(0), False),
            (T - 1, timedelta(0), True),
        ],
    )
    def test_a_job_answers_until_its_lease_is_out(
        self, store: Repository, now: float, ttl: timedelta, answers: bool
    ) -> None:
        """A job answers until lease + ttl <= now: now is floored, a ttl's fraction rounds up."""
        store.create_job(job_of("a", key="k", created_at=T - 100, lease=T))
        found = store.find_job_by_idem_key("ada", "k", now=now, ttl=ttl)
        assert (found == "a") is answers

    def test_a_lookup_changes_nothing(self, store: Repository) -> None:
        """Looking a key up leaves every lease alone."""
        store.create_job(job_of("a", key="k"))
        before = contents_of(store)
        store.find_job_by_idem_key("ada", "k", now=T + 5, ttl=HOUR)
        assert contents_of(store) == before

    def test_keys_compare_by_bytes(self, store: Repository) -> None:
        """Case, accents, trailing blanks and normal forms all make another key (cases.md 31)."""
        keys = ["k", "K", "k ", "é", "e", "e\u0301", ""]
        for number, key in enumerate(keys):
            store.create_job(job_of(f"j{number}", key=key))
        found = [store.find_job_by_idem_key("ada", key, now=T, ttl=HOUR) for key in keys]
        assert found == [f"j{number}" for number in range(len(keys))]

    def test_callers_compare_by_bytes(self, store: Repository) -> None:
        """Callers that differ in case only are two callers (cases.md 31)."""
        store.create_job(job_of("a", caller="acme", key="k"))
        store.create_job(job_of("b", caller="Acme", key="k"))
        store.create_job(job_of("c", caller="Acme"))
        assert (store.count_live_jobs("acme"), store.count_live_jobs("Acme")) == (1, 2)
        assert store.find_job_by_idem_key("Acme", "k", now=T, ttl=HOUR) == "b"
        assert store.count_live_jobs("acme ") == 0
