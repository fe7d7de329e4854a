"""The repository half of the surface: jobs and targets by hand, reading, expiry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from batchmill.records import BatchJob, BatchTarget, JobStatus, TargetStatus
from tests.model import values as draw
from tests.model.machine import Machine, accepted
from tests.model.pair import Side
from tests.model.values import Moment, TargetDraft


class JobRules(Machine):
    """create_job, put_targets, update_target, set_job_status, touch_job."""

    @rule(
        pick=draw.PICKS,
        caller=draw.CALLERS,
        key=draw.KEYS,
        status=draw.JOB_STATUSES,
        error=draw.ODD_TEXTS,
        created=draw.MOMENTS,
        used=draw.MOMENTS,
        given=st.sampled_from([(0, 0), (0, 0), (3, 2**40), (2**31 - 1, 1)]),
    )
    def create_job(
        self,
        pick: int,
        caller: str,
        key: str,
        status: JobStatus,
        error: str,
        created: Moment,
        used: Moment,
        given: tuple[int, int],
    ) -> None:
        """A job by hand, of any status, mostly with zeros."""
        job_id, (done, nbytes) = self.new_id(pick), given
        times: Any = self.at(created), self.at(used)
        job = BatchJob(job_id, caller, "fleet", key, status, error, 3, done, *times, nbytes)
        if accepted(self.ask(lambda side: side.store.create_job(job))):
            self.history.made(job_id, submitted=False, done=done, nbytes=nbytes)

    @rule(
        pick=draw.PICKS,
        drafts=st.lists(draw.TARGET_DRAFTS, max_size=4),
        named=st.booleans(),
    )
    def put_targets(self, pick: int, drafts: list[TargetDraft], named: bool) -> None:
        """Targets by hand, in any order, perhaps some that are there already."""
        job_id = self.job_id(pick)
        targets = [
            BatchTarget(job_id if named else "", d.idx, d.url, "{}", d.status, d.result, d.error)
            for d in drafts
        ]
        if accepted(self.ask(lambda side: side.store.put_targets(job_id, targets))):
            self.history.by_hand |= {job_id} & self.history.submitted

    @rule(
        pick=draw.PICKS,
        idx=st.integers(0, 4),
        status=draw.TARGET_STATUSES,
        result=st.none() | draw.ODD_TEXTS,
        error=draw.OPTIONAL_TEXTS,
        moment=draw.MOMENTS,
    )
    def update_target(
        self,
        pick: int,
        idx: int,
        status: TargetStatus,
        result: str | None,
        error: str | None,
        moment: Moment,
    ) -> None:
        """A target written by hand, of a job by hand or a submitted one."""
        job_id, now = self.job_id(pick), self.at(moment)
        texts = {"result": result, "error": error} if status.finished else {}
        answer = self.ask(
            lambda side: side.store.update_target(job_id, idx, now=now, status=status, **texts)
        )
        if accepted(answer) and status is TargetStatus.RUNNING:
            self.history.by_hand |= {job_id} & self.history.submitted

    @rule(pick=draw.PICKS, status=draw.JOB_STATUSES, error=draw.ODD_TEXTS, moment=draw.MOMENTS)
    def set_job_status(self, pick: int, status: JobStatus, error: str, moment: Moment) -> None:
        """A job's status by hand."""
        job_id, now = self.job_id(pick), self.at(moment)
        self.ask(lambda side: side.store.set_job_status(job_id, status, now=now, error=error))

    @rule(pick=draw.PICKS, moment=draw.MOMENTS, reading=st.booleans())
    def touch(self, pick: int, moment: Moment, reading: bool) -> None:
        """A touch, or a read that touches."""
        job_id, now = self.job_id(pick), self.at(moment)
        if reading:
            self.ask(lambda side: side.store.get_job(job_id, touch_at=now))
        else:
            self.ask(lambda side: side.store.touch_job(job_id, now=now))


class ExpiryRules(Machine):
    """sweep, evict_oldest, mark_in_flight_failed, delete_job."""

    @rule(
        how=draw.mostly(["sweep", "evict", "delete"], ["mark"]),
        pick=draw.PICKS,
        reason=draw.ODD_TEXTS,
        moment=draw.MOMENTS,
        ttl=draw.TTLS,
        max_bytes=draw.BUDGETS,
        limit=draw.LIMITS,
    )
    def expire(
        self,
        how: str,
        pick: int,
        reason: str,
        moment: Moment,
        ttl: timedelta,
        max_bytes: int,
        limit: int | None,
    ) -> None:
        """One of them; together, since nothing gets far where jobs go as fast as they come."""
        job_id, now = self.job_id(pick), self.at(moment)
        calls: dict[str, Callable[[Any], Any]] = {
            "sweep": lambda store: store.sweep(now=now, ttl=ttl, limit=limit),
            "evict": lambda store: store.evict_oldest(max_bytes=max_bytes, limit=limit),
            "delete": lambda store: store.delete_job(job_id),
            "mark": lambda store: store.mark_in_flight_failed(reason, now=now),
        }
        self.ask(lambda side: calls[how](side.store))


class ReadRules(Machine):
    """Every way to read."""

    @rule(
        pick=draw.PICKS,
        start=draw.mostly([0], [1, 2, 5, 2**31 - 1], 1),
        limit=draw.LIMITS,
        with_results=st.booleans(),
        max_bytes=st.none() | draw.BUDGETS,
        caller=st.none() | draw.CALLERS,
        status=st.none() | draw.JOB_STATUSES,
        key=draw.KEYS,
        moment=draw.MOMENTS,
        ttl=draw.TTLS,
    )
    def read(
        self,
        pick: int,
        start: int,
        limit: int | None,
        with_results: bool,
        max_bytes: int | None,
        caller: str | None,
        status: JobStatus | None,
        key: str,
        moment: Moment,
        ttl: timedelta,
    ) -> None:
        """A page of targets and of jobs, all pages, a lookup, the counts."""
        job_id, now = self.job_id(pick), self.at(moment)
        page = {"start": start, "limit": limit, "max_bytes": max_bytes}
        filters = {"caller": caller, "status": status}
        self.ask(lambda side: side.store.get_targets(job_id, with_results=with_results, **page))
        self.ask(lambda side: side.store.list_jobs(after=job_id, limit=limit, **filters))
        self.ask(lambda side: pages(side, filters))
        whose = caller or "ada"
        self.ask(lambda side: side.store.find_job_by_idem_key(whose, key, now=now, ttl=ttl))
        self.ask(lambda side: side.store.get_job(job_id))
        self.ask(lambda side: side.store.count_live_jobs(caller))
        self.ask(lambda side: side.store.nbytes())
        self.ask(stats)


def pages(side: Side, filters: dict[str, Any]) -> list[BatchJob]:
    """All jobs, two a page; what is filtered out can't be lost between pages."""
    found: list[BatchJob] = []
    while page := side.store.list_jobs(after=found[-1].id if found else None, limit=2, **filters):
        found += page
    assert found == side.store.list_jobs(limit=None, **filters)
    return found


def stats(side: Side) -> tuple[Any, ...]:
    """The stats; a count of 0 is as good as none."""
    told = side.store.stats()
    counts = [+Counter(each) for each in (told.hits, told.misses, told.jobs, told.targets)]
    return (*counts, told.nbytes, told.oldest_lease)
