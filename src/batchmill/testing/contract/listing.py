"""Lists of jobs, deleting one, and stats (design.md section 3)."""

from __future__ import annotations

import pytest

from batchmill.errors import JobNotFound
from batchmill.records import BatchJob, JobStatus, TargetStatus
from batchmill.testing.contract.base import Contract
from batchmill.testing.contract.steps import (
    T,
    add_finished,
    add_job,
    job_of,
    statuses_in,
)
from batchmill.testing.contract.surface import Repository


class JobLists(Contract):
    """list_jobs, delete_job and stats."""

    def test_newest_first(self, store: Repository) -> None:
        """Jobs are listed newest first, ties by id downwards, whatever their lease."""
        for job_id, created_at, lease in [("b", T, T + 9), ("a", T, T), ("c", T + 1, T - 9)]:
            store.create_job(job_of(job_id, created_at=created_at, lease=lease))
        assert [job.id for job in store.list_jobs()] == ["c", "b", "a"]

    def test_a_list_is_filtered(self, store: Repository) -> None:
        """A list can be of one caller, of one status, or both."""
        for status in (JobStatus.DONE, JobStatus.QUEUED):
            for caller in ("ada", "bob"):
                store.create_job(job_of(f"{caller}-{status}", caller=caller, status=status))
        by_caller = {job.id for job in store.list_jobs(caller="ada")}
        by_status = {job.id for job in store.list_jobs(status=JobStatus.DONE)}
        assert by_caller == {"ada-done", "ada-queued"}
        assert by_status == {"ada-done", "bob-done"}
        both = store.list_jobs(caller="bob", status=JobStatus.DONE)
        assert [job.id for job in both] == ["bob-done"]

    def test_pages_cover_every_job_once(self, store: Repository) -> None:
        """Pages by after and limit give every job once, in the order of the whole list."""
        for number in range(7):
            store.create_job(job_of(f"j{number * 4 % 7}", created_at=T + number // 3))
        pages: list[BatchJob] = []
        while page := store.list_jobs(after=pages[-1].id if pages else None, limit=2):
            assert len(page) <= 2
            pages += page
        assert pages == store.list_jobs()
        assert len(pages) == 7

    def test_a_page_after_an_unknown_job_fails(self, store: Repository) -> None:
        """A page after a job that isn't there is JobNotFound."""
        with pytest.raises(JobNotFound):
            store.list_jobs(after="nobody")

    def test_a_deleted_job_leaves_nothing(self, store: Repository) -> None:
        """Deleting takes a job, its targets and its bytes; a new job of its id starts empty."""
        add_finished(store, "a", 10, lease=T)
        add_finished(store, "b", 5, lease=T)
        assert store.delete_job("a") is True
        assert (store.get_job("a"), store.get_targets("a"), store.nbytes()) == (None, None, 5)
        assert store.delete_job("a") is False
        store.create_job(job_of("a"))
        assert store.get_targets("a") == []
        assert statuses_in(store, "b") == ["done"]

    def test_live_jobs_can_be_deleted(self, store: Repository) -> None:
        """Deleting a live job takes it out of the live count."""
        add_job(store, "a")
        assert store.delete_job("a") is True
        assert store.count_live_jobs() == 0

    def test_stats_of_an_empty_store(self, store: Repository) -> None:
        """An empty store has nothing to count and no oldest lease."""
        stats = store.stats()
        assert (stats.nbytes, stats.oldest_lease) == (0, None)
        assert sum(stats.jobs.values()) == sum(stats.targets.values()) == 0

    def test_stats_count_what_is_stored(self, store: Repository) -> None:
        """Stats count jobs and targets by status, the bytes, and the oldest lease."""
        add_finished(store, "a", 10, lease=T - 5)
        add_job(store, "b", 3)
        store.update_target("b", 0, now=T, status=TargetStatus.RUNNING)
        stats = store.stats()
        assert {key: count for key, count in stats.jobs.items() if count} == {
            "done": 1,
            "queued": 1,
        }
        seen = {key: count for key, count in stats.targets.items() if count}
        assert seen == {"done": 1, "running": 1, "pending": 2}
        assert (stats.nbytes, stats.oldest_lease) == (10, T - 5)

    def test_stats_count_hits_and_misses(self, store: Repository) -> None:
        """Reads that found something are hits by accessor, the others misses (seed-000, rule 8)."""
        add_job(store, "a")
        before = store.stats()
        store.get_job("a")
        store.get_job("a", touch_at=T)
        store.get_job("nobody")
        store.get_targets("nobody")
        after = store.stats()
        grown = [
            after.hits.get("get_job", 0) - before.hits.get("get_job", 0),
            after.misses.get("get_job", 0) - before.misses.get("get_job", 0),
            after.misses.get("get_targets", 0) - before.misses.get("get_targets", 0),
        ]
        assert grown == [2, 1, 1]
