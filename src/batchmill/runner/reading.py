"""What an application asks about its jobs; all of it only reads, except ``touch``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic
from typing import Final

from batchmill.errors import InvalidInput, JobNotFound, StoreBusy, StoreError, StoreUnavailable
from batchmill.records import BatchTarget
from batchmill.runner.config import Caller
from batchmill.runner.protocol import JobStore
from batchmill.runner.reports import Job, JobReport, TargetReport, job_of, target_report_of
from batchmill.runner.watchers import Watchers
from batchmill.validation import check_id, check_name, check_timeout

PAGE_ROWS: Final = 200
PAGE_BYTES: Final = 4 * 1024 * 1024
"""What ``results`` reads at a time."""
_AT_FIRST: Final[tuple[type[StoreError], ...]] = (StoreBusy,)
_LATER: Final[tuple[type[StoreError], ...]] = (StoreBusy, StoreUnavailable)
"""What a wait sits out: a store that was there, and is away for a while, comes back."""


class JobReader:
    """The reading half of a runner. ``caller=`` takes a Caller or a name.

    Given a caller, another caller's job is as unknown as one that never was.
    """

    def __init__(
        self,
        store: JobStore,
        watchers: Watchers,
        *,
        poll_interval: float,
        now: Callable[[], float],
    ) -> None:
        self._store = store
        self._watchers = watchers
        self._poll_interval = poll_interval
        self._now = now

    def progress(self, job_id: str, *, caller: Caller | str | None = None) -> Job | None:
        """The job, None when unknown; one read, however many targets it has (cases.md S8)."""
        name = None if caller is None else caller_name(caller)
        row = self._store.get_job(job_id)
        if row is None or name not in {None, row.caller}:
            return None
        return job_of(row)

    def status(
        self,
        job_id: str,
        *,
        caller: Caller | str | None = None,
        start: int = 0,
        limit: int | None = None,
        with_results: bool = True,
    ) -> JobReport | None:
        """The job and its targets from index ``start`` on, None when unknown.

        Writes nothing, not even the lease (spec/seed-001, rule 6): call ``touch`` for that.
        """
        job = self.progress(job_id, caller=caller)
        if job is None:
            return None
        rows = self._store.get_targets(job_id, start=start, limit=limit, with_results=with_results)
        return None if rows is None else JobReport(job, [target_report_of(row) for row in rows])

    def results(self, job_id: str, *, caller: Caller | str | None = None) -> Iterator[TargetReport]:
        """Every target as it stands, in order, read in pages bounded by rows and bytes.

        A page that ends with the last of ``targets_total`` is the last: who makes a job by hand
        must have given it the number of its targets.
        Raises ``JobNotFound`` at once for an unknown job, and in the middle when it goes.
        """
        job = self._known(job_id, caller)
        return self._pages(job_id, job.targets_total)

    def _pages(self, job_id: str, targets_total: int) -> Iterator[TargetReport]:
        start = 0
        while page := self._page(job_id, start):
            yield from map(target_report_of, page)
            start = page[-1].idx + 1
            if start == targets_total:
                break

    def _page(self, job_id: str, start: int) -> list[BatchTarget]:
        page = self._store.get_targets(job_id, start=start, limit=PAGE_ROWS, max_bytes=PAGE_BYTES)
        if page is None:
            raise JobNotFound("job_id: the job is gone; it was swept, evicted or deleted")
        return page

    def touch(self, job_id: str, *, caller: Caller | str | None = None) -> None:
        """Set the job's lease to now; raises ``JobNotFound``."""
        if caller is not None:
            self._known(job_id, caller)
        self._store.touch_job(job_id, now=self._now())

    def wait(
        self,
        job_id: str,
        timeout: float | None = None,
        *,
        caller: Caller | str | None = None,
    ) -> Job:
        """The job once it has ended, whoever works on it.

        ``timeout`` in seconds, None for ever. Raises ``TimeoutError``, and ``JobNotFound`` for an
        unknown job or one that goes meanwhile. Waiting doesn't touch the lease; a store that is
        away meanwhile is waited for too, one that is away from the start raises
        ``StoreUnavailable``.
        """
        check_id("job_id", job_id)
        patience = check_timeout("timeout", timeout)
        deadline = None if patience is None else monotonic() + patience
        passing = _AT_FIRST
        with self._watchers.watching(job_id, every=False) as woken:
            while True:
                woken.clear()
                job = self._patiently_known(job_id, caller, passing)
                passing = _LATER
                if job is not None and job.status.terminal:
                    return job
                pause = self._poll_interval
                if deadline is not None:
                    pause = min(pause, deadline - monotonic())
                    if pause <= 0:
                        raise TimeoutError(f"job {job_id} has not ended in {timeout} s")
                woken.wait(pause)

    def watch(self, job_id: str, *, caller: Caller | str | None = None) -> Iterator[Job]:
        """The job now, again each time that its status or counters changed, and at its end.

        Several changes in a short time may come as one. Raises ``JobNotFound`` at once for an
        unknown job, and in the middle when it goes.
        """
        self._known(job_id, caller)
        return self._changes(job_id, caller)

    def _changes(self, job_id: str, caller: Caller | str | None) -> Iterator[Job]:
        last: Job | None = None
        with self._watchers.watching(job_id, every=True) as woken:
            while last is None or last.status.live:
                woken.clear()
                job = self._patiently_known(job_id, caller, _LATER)
                if job is not None and (last is None or _differ(job, last)):
                    last = job
                    yield job
                else:
                    woken.wait(self._poll_interval)

    def _known(self, job_id: str, caller: Caller | str | None) -> Job:
        job = self.progress(job_id, caller=caller)
        if job is None:
            raise JobNotFound("job_id: no such job; it never was, or was swept, evicted or deleted")
        return job

    def _patiently_known(
        self, job_id: str, caller: Caller | str | None, passing: tuple[type[StoreError], ...]
    ) -> Job | None:
        """None while the store is busy, say: who waits anyway asks again (cases.md S17)."""
        try:
            return self._known(job_id, caller)
        except passing:
            return None


def _differ(job: Job, last: Job) -> bool:
    """Whether there is something to tell; a lease moves without news."""
    return (job.status, job.error, job.targets_done, job.nbytes) != (
        last.status,
        last.error,
        last.targets_done,
        last.nbytes,
    )


def caller_name(caller: Caller | str) -> str:
    """The name of a caller, or the name itself."""
    name = caller if isinstance(caller, str) else getattr(caller, "name", None)
    if not isinstance(name, str):
        raise InvalidInput("caller: must be a caller with a name (str), or a name")
    return check_name("caller", name)
