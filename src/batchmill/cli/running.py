"""The jobs of one ``batchmill run``: submitted, watched, and cancelled together."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any, Final

from batchmill.cli.interrupts import Interrupts
from batchmill.cli.shapes import Entry, read_entries
from batchmill.errors import StoreBusy
from batchmill.records import BatchJob, JobStatus, TargetStatus
from batchmill.runner import FetchContext, Runner, RunnerConfig, Target
from batchmill.runner.rules import retry_later_in
from batchmill.validation import MAX_BYTES, MAX_COUNT, NAME_LENGTH

CALLER_CLASS: Final = "restricted"
_LOOK_EVERY: Final = 0.1


@dataclass(frozen=True, slots=True)
class NamedCaller:
    """A caller of the command's: a name, and nothing else to keep in memory."""

    name: str


def resolve_named(name: str, _caller_class: str) -> NamedCaller:
    """Any name is a caller here, so that a job goes on after its run was killed."""
    return NamedCaller(name)


def queue_of(fetch: str) -> str:
    """The queue of a fetch function's own: a runner never takes jobs that another one is for."""
    name = f"run:{fetch}"
    if len(name) <= NAME_LENGTH:
        return name
    return f"run:{hashlib.sha256(fetch.encode(errors='replace')).hexdigest()}"


def run_config(workers: int, hold_for: timedelta, ttl: timedelta) -> RunnerConfig:
    """No cap but the workers: a list may be of any length, and evicts nobody's results."""
    return RunnerConfig(
        ttl=ttl,
        targets_per_job=MAX_COUNT,
        jobs_per_caller=MAX_COUNT,
        jobs_total=MAX_COUNT,
        workers=workers,
        worker_limit=workers,
        max_bytes=MAX_BYTES,
        hold_for=hold_for,
    )


class Watched:
    """A fetch function, and how many of its targets came back busy and wait to be tried again."""

    def __init__(self, fetch: Callable[..., Any]) -> None:
        self._fetch = fetch
        self._lock = threading.Lock()
        self._busy: set[tuple[str, int]] = set()

    @property
    def busy(self) -> int:
        """The targets whose last fetch said that it was only busy."""
        with self._lock:
            return len(self._busy)

    def __call__(self, context: FetchContext, caller: Any, target: Target) -> Any:
        """Fetch; whatever comes out of it comes out of this."""
        busy = False
        try:
            return self._fetch(context, caller, target)
        except Exception as error:
            busy = retry_later_in(error) is not None
            raise
        finally:
            with self._lock:
                place = (context.job_id, context.idx)
                (self._busy.add if busy else self._busy.discard)(place)


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of the list that is one job; ``offset`` is where it begins."""

    job_id: str
    reused: bool
    offset: int
    total: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far all parts together are."""

    finished: int
    total: int
    live: bool
    busy: int = 0
    """How many wait to be tried again."""


class Run:
    """A list of targets as jobs: one, or as many as there are workers, since a job is serial."""

    def __init__(self, store: Any, runner: Runner[NamedCaller], watched: Watched) -> None:
        self._store = store
        self._watched = watched
        self.runner = runner
        self.parts: list[Part] = []
        self._ended: dict[str, BatchJob | None] = {}

    def submit(self, caller: NamedCaller, targets: Sequence[Target], workers: int) -> None:
        """Submit the list in contiguous parts; a part that was submitted before is reused.

        Two equal parts are one job, fetched once and reported at both places.
        """
        made: set[str] = set()
        for start, end in pairwise(_borders(len(targets), workers)):
            job_id, reused = self.runner.submit(
                caller, targets[start:end], caller_class=CALLER_CLASS
            )
            part = Part(job_id, reused and job_id not in made, start, end - start)
            self.parts.append(part)
            if not part.reused:
                made.add(job_id)

    @property
    def job_ids(self) -> list[str]:
        """The jobs, each once, in order."""
        return list(dict.fromkeys(part.job_id for part in self.parts))

    def jobs(self) -> list[BatchJob]:
        """The jobs as they stand, without those that are gone."""
        found = (self._job(job_id) for job_id in self.job_ids)
        return [job for job in found if job is not None]

    def gone(self) -> list[str]:
        """The jobs that someone deleted, swept or evicted meanwhile."""
        return [job_id for job_id in self.job_ids if self._job(job_id) is None]

    def progress(self) -> Progress:
        """Where it stands: constant time a job, and none for one that has ended."""
        jobs = {job_id: self._job(job_id) for job_id in self.job_ids}
        finished = sum(job.targets_done for part in self.parts if (job := jobs[part.job_id]))
        live = any(job is not None and job.status.live for job in jobs.values())
        total = sum(part.total for part in self.parts)
        return Progress(finished, total, live, self._watched.busy)

    def watch(self, interrupts: Interrupts, show: Callable[[Progress], None]) -> None:
        """Show the progress until every job has ended, or the user asked to stop."""
        while True:
            with suppress(StoreBusy):  # the file is in use; the jobs go on, and so do we
                now = self.progress()
                show(now)
                if not now.live:
                    return
            if interrupts.wait(_LOOK_EVERY):
                return

    def cancel(self) -> int:
        """Cancel what is live; the count."""
        return sum(self.runner.cancel(job_id) for job_id in self.job_ids)

    def entries(self, *, with_results: bool = True) -> Iterator[Entry]:
        """Every target at its place in the list, in order."""
        gone = set(self.gone())
        for part in self.parts:
            if part.job_id not in gone:
                yield from read_entries(
                    self._store, part.job_id, offset=part.offset, with_results=with_results
                )

    def held(self) -> list[int]:
        """Places in the list that are in flight elsewhere; asked before the runner starts."""
        found: list[int] = []
        for part in self.parts:
            job = self._job(part.job_id) if part.reused else None
            if job is None or job.status is not JobStatus.RUNNING:
                continue
            # A job is serial: what is in flight comes right after what is finished.
            rows = self._store.get_targets(
                job.id, start=job.targets_done, limit=1, with_results=False
            )
            if rows and rows[0].status is TargetStatus.RUNNING:
                found.append(part.offset + rows[0].idx)
        return found

    def _job(self, job_id: str) -> BatchJob | None:
        """The job; one that has ended is not read again, its status is final."""
        if job_id not in self._ended:
            job: BatchJob | None = self._store.get_job(job_id)
            if job is not None and job.status.live:
                return job
            self._ended[job_id] = job
        return self._ended[job_id]


def _borders(count: int, parts: int) -> list[int]:
    """Where contiguous parts of nearly the same length begin, and the end."""
    parts = min(parts, count)
    return [count * part // parts for part in range(parts + 1)]
