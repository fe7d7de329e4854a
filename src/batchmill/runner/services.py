"""What a runner does beside fetching: renew its holds, and keep house.

Each is one loop with one bounded step that a test can call directly.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from datetime import timedelta
from time import monotonic
from typing import Any

from batchmill.records import Released
from batchmill.runner.after import AfterCommit
from batchmill.runner.callers import KeptCallers
from batchmill.runner.identity import Identity
from batchmill.runner.logs import Log
from batchmill.runner.outages import Outages
from batchmill.runner.pauses import LONGEST_PAUSE, backoff, jitter
from batchmill.runner.protocol import JobStore
from batchmill.runner.workers import Workers

SWEEP_STEP = 100
"""The most jobs that one step of housekeeping sweeps, evicts, looks at or releases."""
MOST_STEPS = 10_000
LONGEST_PERIOD = 60.0
"""spec/seed-001 and design.md section 5, Sweeping: every ``min(ttl / 10, 60 s)``."""
RELEASE = "release"
"""The name of the loop that takes over what lost runners left."""
SHORTEST_LOOK = 0.1
"""Seconds between two looks for what lost runners left, however short the poll is."""


class Loop:
    """Calls a step every ``period`` seconds in a thread of its own, whatever it raises."""

    def __init__(
        self,
        name: str,
        period: float,
        step: Callable[[], object],
        *,
        logger: Log,
        outages: Outages,
    ) -> None:
        self._name = name
        self._period = period
        self._step = step
        self._logger = logger
        self._outages = outages
        self._ended = threading.Event()
        self._failures = 0
        self._thread: threading.Thread | None = None

    def start(self, name: str) -> None:
        """Start the thread; a daemon. The first step comes after one period."""
        thread = threading.Thread(target=self._run, name=f"{name}-{self._name}", daemon=True)
        thread.start()
        self._thread = thread

    def _run(self) -> None:
        pause = self._period
        while not self._ended.wait(min(pause, threading.TIMEOUT_MAX)):
            pause = self.turn()

    def turn(self) -> float:
        """One step; the seconds until the next, fewer than ``period`` after a failure."""
        try:
            self._step()
        except Exception as error:  # noqa: BLE001 - no error may end a service
            if self._outages.failed(self._name, error):
                self._logger.warning("%s: store error (%s)", self._name, type(error).__name__)
            self._failures += 1
            return min(backoff(self._failures, jitter()), self._period)
        self._outages.answered(self._name)
        self._failures = 0
        return self._period

    def stop(self, timeout: float) -> None:
        """End after the step under way; wait at most so many seconds for it."""
        self._ended.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)


class Holder:
    """Says that the runner is alive, and renews its holds; one step at a time.

    After an absence in which holds lapse (the database was away, the host was suspended, a clock
    jumped) other runners have been away as long, and come back within ``LONGEST_PAUSE``:
    until then nothing of theirs counts as lost here.
    """

    def __init__(
        self,
        store: JobStore,
        identity: Callable[[], Identity],
        workers: Workers,
        *,
        hold_for: float,
        now: Callable[[], float],
        sample: Callable[[], None],
        logger: Log,
    ) -> None:
        self._store = store
        self._identity = identity
        self._workers = workers
        self._hold_for = hold_for
        self._now = now
        self._sample = sample
        self._logger = logger
        self._stepping = threading.Lock()
        self._renewed_at: float | None = None
        self._others_until = -math.inf

    def step(self) -> int:
        """Renew once; the number of holds that turned out to be lost."""
        with self._stepping:
            return self._renew()

    def may_release(self) -> bool:
        """Whether it is certain enough that what looks lost is lost; renews first where need be."""
        renewed_at = self._renewed_at
        if renewed_at is None or self._now() - renewed_at >= self._hold_for / 2:
            self.step()
        return monotonic() >= self._others_until

    def _renew(self) -> int:
        self._sample()
        now = self._now()
        held = self._store.hold(
            self._identity().id, self._workers.tokens(), now=now, hold_for=self._hold_for
        )
        if self._renewed_at is not None and now - self._renewed_at >= self._hold_for:
            self._others_until = monotonic() + min(LONGEST_PAUSE, self._hold_for)
        self._renewed_at = now
        if held.cancelled:
            self._workers.cancel(held.cancelled)
        lost = self._workers.lost(held.lost) if held.lost else []
        for job_id in lost:
            self._logger.warning("job %s: the hold on its target was lost", job_id)
        return len(lost)


class Housekeeper:
    """Releases what lost runners left, sweeps, evicts, and forgets callers of jobs gone."""

    def __init__(
        self,
        store: JobStore,
        kept: KeptCallers[Any],
        after: AfterCommit,
        *,
        ttl: timedelta,
        hold_for: float,
        max_bytes: int,
        max_attempts: int,
        now: Callable[[], float],
    ) -> None:
        self._store = store
        self._kept = kept
        self._after = after
        self._ttl = ttl
        self._hold_for = hold_for
        self._max_bytes = max_bytes
        self._max_attempts = max_attempts
        self._now = now

    def release(self) -> Released:
        """One bounded ``release_lost``, with its hooks."""
        released = self._store.release_lost(
            now=self._now(),
            hold_for=self._hold_for,
            max_attempts=self._max_attempts,
            limit=SWEEP_STEP,
        )
        self._after.released(released)
        return released

    def release_all(self) -> Released:
        """Release until nothing is left to; what that was, all together."""
        total = Released()
        for _ in range(MOST_STEPS):
            step = self.release()
            if not (step.put_back or step.failed or step.settled):
                break
            total = Released(
                total.put_back + step.put_back,
                [*total.failed, *step.failed],
                [*total.settled, *step.settled],
            )
        return total

    def step(self) -> int:
        """Sweep, evict and forget, each bounded; the count of jobs that went."""
        evicted = self._store.evict_oldest(max_bytes=self._max_bytes, limit=SWEEP_STEP)
        self._look_for_unseen()
        self._forget_gone()
        return self.sweep() + evicted

    def _look_for_unseen(self) -> None:
        """Jobs of the application's own transactions: committed by now, or rolled back."""
        for job_id, until in self._after.unseen():
            if self._store.get_job(job_id) is not None:
                self._after.seen(job_id)
            elif until < self._now():
                self._after.not_stored(job_id)

    def _forget_gone(self) -> None:
        """Callers of jobs that were ended, swept or deleted elsewhere."""
        for job_id in self._kept.of_stored_jobs():
            job = self._store.get_job(job_id)
            if job is None or job.status.terminal:
                self._kept.forget(job_id)

    def sweep(self) -> int:
        """One bounded sweep; the count of jobs swept."""
        count = self._store.sweep(now=self._now(), ttl=self._ttl, limit=SWEEP_STEP)
        self._after.swept(count)
        return count
