"""What follows a commit: hooks, logs, and those who wait."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

from batchmill.errors import TargetError
from batchmill.records import RUNNER_LOST, Exchange, Released, Settled
from batchmill.runner.callers import KeptCallers
from batchmill.runner.dispatch import Landed
from batchmill.runner.logs import Log
from batchmill.runner.observer import Observer, frames
from batchmill.runner.watchers import Watchers

UNSTORABLE = "the outcome can't be stored"


class AfterCommit:
    """Tells of what has been committed, in outcome order; drops the callers of ended jobs."""

    def __init__(
        self,
        observer: Observer,
        watchers: Watchers,
        kept: KeptCallers[Any],
        logger: Log,
    ) -> None:
        self._observer = observer
        self._watchers = watchers
        self._kept = kept
        self._logger = logger
        self._unseen: dict[str, float] = {}
        self._made: deque[tuple[Exchange, Sequence[Landed]]] = deque()
        self._telling = threading.Lock()
        self._creating = threading.Lock()

    def reused(self) -> None:
        """A submit was answered with an earlier job."""
        self._observer.submitted(reused=True)
        self._observer.drain()

    def submitting(self, job_id: str, *, until: float = math.inf) -> None:
        """A job is being stored; it is told of when it is first seen to be.

        That is when its submit returns, unless a worker is faster: so nothing of a job is told
        before it was created. In a transaction of the application's own, which may yet roll
        back, it is when it is claimed or ended here, or found by the housekeeping; at ``until``
        (unix seconds) it counts as rolled back.
        """
        self._unseen[job_id] = until

    def unseen(self) -> list[tuple[str, float]]:
        """The jobs that have not been seen committed, and until when they may be."""
        return list(self._unseen.items())

    def seen(self, job_id: str) -> None:
        """A job has been seen in the store."""
        self._created(job_id)
        self._observer.drain()

    def _created(self, job_id: str) -> None:
        with self._creating:  # whoever comes second may go on once it is told
            if self._unseen.pop(job_id, None) is not None:
                self._kept.stored(job_id)
                self._observer.submitted(reused=False)
                self._observer.depth()

    def not_stored(self, job_id: str) -> None:
        """A job was refused or rolled back, and will not be seen any more."""
        self._unseen.pop(job_id, None)
        self._kept.forget(job_id)

    def swept(self, count: int) -> None:
        """So many jobs were swept, live ones maybe among them."""
        if count:
            self._logger.info("%s jobs swept", count)
            self._observer.depth()
            self._observer.drain()

    def exchanged(self, exchange: Exchange, landed: Sequence[Landed]) -> None:
        """An exchange was made. Called in the order of exchanges; ``tell`` does the rest."""
        self._made.append((exchange, landed))

    def tell(self) -> None:
        """Tell of the exchanges: target, job, job_seconds, depth, outcome by outcome.

        One thread at a time tells, in the order of exchanges, whichever leader is faster; the
        others leave theirs to it.
        """
        while self._made and self._telling.acquire(blocking=False):
            try:
                while self._made:
                    self._tell_of(*self._made.popleft())
            finally:
                self._telling.release()
        self._observer.drain()

    def _tell_of(self, exchange: Exchange, landed: Sequence[Landed]) -> None:
        try:
            self._queue(exchange, landed)
        except Exception as error:  # noqa: BLE001 - a clock of the application's
            self._logger.warning("telling of an exchange raised: %s", frames(error))

    def _queue(self, exchange: Exchange, landed: Sequence[Landed]) -> None:
        if self._unseen:
            for claim in exchange.claims:
                self._created(claim.job_id)
        stored, ended = set(exchange.stored), {each.job_id: each for each in exchange.settled}
        for each in landed:
            if each.outcome.token in stored:
                self._stored(each, unstorable=each.outcome.token in exchange.unstorable)
            elif each.outcome.token in exchange.refused:
                self._logger.warning(
                    "job %s target %s: outcome refused, its hold was lost",
                    each.outcome.job_id,
                    each.outcome.idx,
                )
            if each.outcome.job_id in ended:
                self._ended(ended.pop(each.outcome.job_id))
        for settled in ended.values():
            self._ended(settled)

    def _stored(self, landed: Landed, *, unstorable: bool) -> None:
        outcome, flight = landed.outcome, landed.flight
        if unstorable:
            self._logger.warning("job %s target %s: %s", outcome.job_id, outcome.idx, UNSTORABLE)
            self._observer.target(TargetError(UNSTORABLE), flight.seconds, 0)
        else:
            self._observer.target(flight.error, flight.seconds, flight.result_bytes)
        if self._watchers:
            self._observer.then(self._watchers.changed, outcome.job_id, ended=False)

    def released(self, released: Released) -> None:
        """What lost runners had in flight was put back or failed, and their local jobs ended."""
        for _ in released.failed:
            self._observer.target(TargetError(RUNNER_LOST), 0.0, 0)
        for settled in released.settled:
            self._ended(settled)
        if released.put_back or released.failed or released.settled:
            self._logger.warning(
                "left by lost runners: targets put back %s, targets failed %s, jobs ended %s",
                released.put_back,
                len(released.failed),
                len(released.settled),
            )
        self._observer.drain()

    def cancelled(self, settled: Settled) -> None:
        """A job was cancelled here."""
        self._ended(settled)
        self._observer.drain()

    def _ended(self, settled: Settled) -> None:
        self._created(settled.job_id)
        self._logger.info("job %s ended: %s", settled.job_id, settled.status)
        self._kept.forget(settled.job_id)
        self._observer.settled(settled)
        self._observer.depth()
        if self._watchers:
            self._observer.then(self._watchers.changed, settled.job_id, ended=True)
