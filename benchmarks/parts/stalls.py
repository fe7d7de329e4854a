"""How long a sweep, or an eviction, of very many jobs holds up a writer of another process.

The writer does what a worker does: it stores a target and claims the next, by itself, as fast as
it can, and submits more when there is no more. What counts is its longest call that ran while the
removal did. All times are of the clock that the processes of a machine share.
"""

from __future__ import annotations

import secrets
import time
from datetime import timedelta
from time import perf_counter

from batchmill.records import BatchJob, BatchTarget, JobStatus, Limits, Outcome
from batchmill.store import BatchRepository
from benchmarks import kept
from benchmarks.child import Child, ChildFailed, call, wait_for_go
from benchmarks.context import Context
from benchmarks.mill import opened
from benchmarks.parts.drains import split
from benchmarks.shape import RESULT, url_of

DAY = 86_400
BEFORE = 3.0
"""Seconds that the writer writes undisturbed, to compare with: warm, and with no one beside it."""
WARM = 20
"""Its first calls, which compile each statement and don't count."""
TARGETS = 500
"""Of each job that the writer writes."""
Span = tuple[float, float]


def measure(context: Context) -> None:
    """Some removals of each kind."""
    jobs = context.sizes.removed
    for _ in range(min(context.rounds, context.sizes.removals)):
        for name in ("sqlite-full", "postgresql"):
            for what in ("sweep", "evict"):
                with context.databases.fresh(name) as url:
                    context.say(f"stalls, {name}: filling in {jobs:,} jobs, then {what}")
                    kept.fill(url, jobs, result_bytes=len(RESULT), age=2 * DAY)
                    _measured(context, name, what, url, jobs)


def _measured(context: Context, name: str, what: str, url: str, jobs: int) -> None:
    database, durability = split(name)
    asked = {"url": url, "durability": durability}
    with Child("benchmarks.parts.stalls:write", **asked) as writer:
        writer.wait_ready()
        alone = perf_counter()
        time.sleep(BEFORE)
        undisturbed = alone, perf_counter()
        span = call("benchmarks.parts.stalls:remove", what=what, jobs=jobs, **asked)
        writer.go()
        calls: list[Span] = writer.result()
    during, before = _waits(calls, span), _waits(calls, undisturbed)
    context.report.value(f"stall-{what}-{database}", during[-1] * 1000)
    nearly = during[int(len(during) * 0.999)]
    context.report.value(f"999 of 1,000 waits beside the {what}, {database}, ms", nearly * 1000)
    context.report.value(f"longest wait before the {what}, {database}, ms", before[-1] * 1000)
    context.report.value(f"jobs a second of the {what}, {database}", jobs / (span[1] - span[0]))


def _waits(calls: list[Span], within: Span) -> list[float]:
    """How long each call took that overlaps a span of time, the longest last."""
    found = [end - begun for begun, end in calls if begun < within[1] and end > within[0]]
    if not found:
        raise ChildFailed("the writer called nothing in this time")
    return sorted(found)


def remove(url: str, durability: str, what: str, jobs: int) -> Span:
    """In a child: remove so many jobs; when that began and ended."""
    with opened(url, durability) as store:
        begun = perf_counter()
        if what == "sweep":
            count = store.sweep(now=time.time(), ttl=timedelta(days=1), limit=jobs)
        else:
            count = store.evict_oldest(max_bytes=1, limit=jobs)
        ended = perf_counter()
        if count != jobs:
            raise SystemExit(f"{count} of {jobs} jobs were removed")
        return begun, ended


def write(url: str, durability: str) -> list[Span]:
    """In a child: store and claim until told to stop; the begin and end of each call."""
    import threading

    stopped = threading.Event()
    with opened(url, durability) as store:
        writer = _Writer(store)
        for _ in range(WARM):
            writer.step()
        writer.calls.clear()

        def until_told() -> None:
            wait_for_go()
            stopped.set()

        threading.Thread(target=until_told, daemon=True).start()
        while not stopped.is_set():
            writer.step()
        return writer.calls


class _Writer:
    """A worker without a runner: one exchange a step."""

    def __init__(self, store: BatchRepository) -> None:
        self.calls: list[Span] = []
        self._store = store
        self._outcomes: list[Outcome] = []
        self._number = 0

    def step(self) -> None:
        """Store what was claimed, claim the next; submit more when there is no more."""
        begun = perf_counter()
        answer = self._store.exchange(
            "writer",
            self._outcomes,
            queue="default",
            want=1,
            shared=True,
            now=time.time(),
            hold_for=60.0,
            max_bytes=1 << 40,
        )
        self.calls.append((begun, perf_counter()))
        self._outcomes = [
            Outcome(claim.job_id, claim.idx, claim.token, "done", result=RESULT)
            for claim in answer.claims
        ]
        if not answer.claims:
            self._submit()

    def _submit(self) -> None:
        begun, now, job_id = perf_counter(), time.time(), secrets.token_hex(16)
        self._number += 1
        job = BatchJob(
            id=job_id,
            caller="writer",
            caller_class="restricted",
            idem_key=job_id,
            status=JobStatus.QUEUED,
            error="",
            targets_total=TARGETS,
            targets_done=0,
            created_at=int(now),
            lease=int(now),
            nbytes=0,
        )
        self._store.submit_job(
            job,
            [BatchTarget(job_id, idx, url_of(self._number, idx)) for idx in range(TARGETS)],
            queue="default",
            home=None,
            limits=Limits(targets_per_job=TARGETS, jobs_per_caller=10, jobs_total=10),
            now=now,
            ttl=timedelta(days=1),
        )
        self.calls.append((begun, perf_counter()))
