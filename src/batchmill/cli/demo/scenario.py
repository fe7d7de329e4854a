"""The demo's story, played on a real store, a real runner and a real server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from batchmill.cli.demo.cast import ADA, CANCEL_AFTER, CAST, CLEO, REPLAY_AT, Person
from batchmill.cli.demo.journal import Journal, JournalledFetch, Turn
from batchmill.cli.fetchers import WebFetcher
from batchmill.cli.running import NamedCaller, resolve_named
from batchmill.cli.shapes import Entry, read_entries
from batchmill.cli.values import plural
from batchmill.records import BatchJob, BatchTarget, JobStatus, TargetStatus
from batchmill.runner import Runner, RunnerConfig

TTL: Final = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class JobView:
    """One job as the database has it at a moment."""

    person: Person
    job: BatchJob
    targets: tuple[BatchTarget, ...]

    @property
    def running(self) -> BatchTarget | None:
        """The target that is in flight."""
        return next((row for row in self.targets if row.status is TargetStatus.RUNNING), None)


@dataclass(frozen=True, slots=True)
class Frame:
    """Everything that the screen shows at a moment; no result is read for it."""

    jobs: tuple[JobView, ...]
    nbytes: int
    turns: tuple[Turn, ...]
    events: tuple[tuple[str, str], ...]

    @property
    def live(self) -> bool:
        """True while a job is queued, running, or has a target in flight."""
        return any(view.job.status.live or view.running for view in self.jobs)


@dataclass(frozen=True, slots=True)
class Removal:
    """What a sweep or an eviction did: counts, and the bytes before and after."""

    removed: int
    callers: tuple[str, ...]
    before: int
    after: int


class Scenario:
    """Submits, watches, cancels, replays, and cleans up at the end."""

    def __init__(self, store: Any, fetcher: WebFetcher, journal: Journal, address: str) -> None:
        self._store = store
        self._journal = journal
        self._address = address
        self._job_ids: dict[str, str] = {}
        self._replayed = self._cancelled = False
        self._ended: set[Person] = set()
        self.runner = Runner(
            store,
            JournalledFetch(fetcher, journal, self._react),
            RunnerConfig(ttl=TTL, retry_wait=timedelta(seconds=1)),
            resolve_caller=resolve_named,
        )

    @property
    def job_ids(self) -> Mapping[str, str]:
        """The jobs by their caller's name."""
        return self._job_ids

    def submit_all(self) -> None:
        """Each person submits a job."""
        for person in CAST:
            job_id, _ = self._submit(person)
            self._job_ids[person.name] = job_id
            job = self._store.get_job(job_id)
            self._journal.tell(
                person.name, f"submits {plural(job.targets_total, 'target')}: job {job_id}"
            )

    def _submit(self, person: Person) -> tuple[str, bool]:
        targets = [self._address + name for name in person.documents]
        return self.runner.submit(NamedCaller(person.name), targets)

    def frame(self) -> Frame:
        """The state of everything, read from the database."""
        jobs = tuple(self._view(person) for person in CAST if self._is_kept(person))
        self._tell_ends(jobs)
        return Frame(
            jobs=jobs,
            nbytes=self._store.nbytes(),
            turns=self._journal.turns,
            events=tuple((event.caller, event.text) for event in self._journal.events),
        )

    def _is_kept(self, person: Person) -> bool:
        return self._store.get_job(self._job_ids[person.name]) is not None

    def _view(self, person: Person) -> JobView:
        job_id = self._job_ids[person.name]
        targets = self._store.get_targets(job_id, with_results=False) or []
        return JobView(person, self._store.get_job(job_id), tuple(targets))

    def _react(self, turn: Turn) -> None:
        """What callers do when a target starts: one cancels, one submits again.

        It hangs on the turns and not on a clock, so that the story is the same on any machine.
        """
        if turn.caller == ADA.name and turn.idx == REPLAY_AT and not self._replayed:
            self._replayed = True
            self._replay()
        had = sum(each.caller == CLEO.name for each in self._journal.turns)
        if turn.caller != CLEO.name and had >= CANCEL_AFTER and not self._cancelled:
            self._cancelled = True
            self._cancel()

    def _tell_ends(self, jobs: Iterable[JobView]) -> None:
        """Note down which jobs have ended since the last frame; a cancel was told already."""
        for view in jobs:
            told = view.person in self._ended or view.job.status is JobStatus.CANCELLED
            if view.job.status.terminal and not told:
                self._ended.add(view.person)
                self._journal.tell(view.person.name, f"the job has ended: {view.job.status}")

    def _cancel(self) -> None:
        if self.runner.cancel(self._job_ids[CLEO.name]):
            self._journal.tell(CLEO.name, "cancels: what is stored stays, the rest is left pending")

    def _replay(self) -> None:
        job_id, reused = self._submit(ADA)
        answer = "answers" if reused else "is made"
        self._journal.tell(ADA.name, f"submits the same again: job {job_id} {answer}")

    def results(self, person: Person) -> list[Entry]:
        """A person's results, in order."""
        return list(read_entries(self._store, self._job_ids[person.name]))

    def evict(self) -> tuple[int, Removal]:
        """Hold the results to one byte less than they take; that budget, and what went."""
        budget = self._store.nbytes() - 1
        return budget, self._removing(lambda: self._store.evict_oldest(max_bytes=budget))

    def sweep(self) -> Removal:
        """Sweep as of a day later, ada having looked at her job an hour before that."""
        later = self._store.now() + TTL.total_seconds()
        self._store.touch_job(self._job_ids[ADA.name], now=later - 3600)
        return self._removing(lambda: self._store.sweep(now=later + 1, ttl=TTL))

    def _removing(self, remove: Any) -> Removal:
        before, kept = self._store.nbytes(), self._kept()
        removed = remove()
        gone = tuple(name for name in kept if name not in self._kept())
        return Removal(removed, gone, before, self._store.nbytes())

    def _kept(self) -> list[str]:
        return [person.name for person in CAST if self._is_kept(person)]
