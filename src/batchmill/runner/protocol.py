"""What a runner asks of a store, and of the application's fetch function.

A runner knows its store only through ``JobStore``. Times are unix seconds; ``hold_for`` is in
seconds; everything that is asked in one call happens in one transaction or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from batchmill.records import (
    Admission,
    BatchJob,
    BatchTarget,
    Exchange,
    Held,
    Limits,
    Outcome,
    Released,
    Settled,
)
from batchmill.runner.config import Caller
from batchmill.runner.context import FetchContext
from batchmill.runner.targets import Result, Target

C = TypeVar("C", bound=Caller)
C_contra = TypeVar("C_contra", bound=Caller, contravariant=True)

ResolveCaller: TypeAlias = Callable[[str, str], C | None]
"""Makes a caller of its name and class; None fails the job, raising is a retry-later."""


class FetchFunc(Protocol[C_contra]):
    """Does one target for the caller that submitted the job; called from a runner's thread.

    Raise ``TargetError`` or ``RetryLater`` to say what became of it.
    """

    def __call__(self, context: FetchContext, caller: C_contra, target: Target, /) -> Result:
        """The finished target."""
        ...


@runtime_checkable
class JobStore(Protocol):
    """A durable store of jobs, as the runner needs it.

    Each method is atomic, safe to call from any thread, and may raise ``StoreError``;
    ``InvalidInput`` for an argument that it can't take.
    """

    def submit_job(
        self,
        job: BatchJob,
        targets: Sequence[BatchTarget],
        *,
        queue: str,
        home: str | None,
        limits: Limits,
        now: float,
        ttl: timedelta,
        within: Any = None,
    ) -> Admission:
        """Answer with the job that has the key, or store this one with its turn, or reject it.

        In this order: no targets; the lookup (a hit sets that job's lease to ``now``); the caps
        targets_per_job, jobs_per_caller, jobs_total; then job, targets and turn. The caller sets
        every field of ``job``: id, key, ``queued``, ``targets_total``, both times. With ``home``
        only that runner may take it, and it counts as seen ``now``. ``within`` is the
        application's own transaction, if the store can join one.
        """
        ...

    def exchange(
        self,
        runner_id: str,
        outcomes: Sequence[Outcome],
        *,
        queue: str,
        want: int,
        shared: bool,
        now: float,
        hold_for: float,
        max_bytes: int,
    ) -> Exchange:
        """Store what finished, settle jobs, keep the byte budget, claim up to ``want`` targets.

        Claims come from ``queue``, from jobs whose home is this runner, and with ``shared`` from
        those without a home; lowest turn first. An outcome whose token is no longer current
        changes nothing. A job settled here is not evicted here.
        """
        ...

    def hold(self, runner_id: str, tokens: Sequence[str], *, now: float, hold_for: float) -> Held:
        """Say that the runner is alive; renew these holds, and the leases of their jobs."""
        ...

    def leave(self, runner_id: str) -> None:
        """Say that the runner has ended in order: its local jobs count as lost from now on."""
        ...

    def release_lost(
        self, *, now: float, hold_for: float, max_attempts: int, limit: int
    ) -> Released:
        """Put back what lost runners had in flight, and fail the local jobs of runners not seen.

        Lost is a target whose hold has lapsed, whether its job is shared or local: a living home
        that doesn't renew a hold never heard of its claim. At most ``limit`` jobs are looked at
        in one call. The ``max_attempts``-th loss of a target stores it as failed ("runner lost").
        A local job fails when its home has not been
        seen for ``hold_for``, or for the home's own hold_for where that is longer.
        """
        ...

    def cancel_job(self, job_id: str, *, now: float) -> Settled | None:
        """End a live job as cancelled; None for an unknown or terminal one."""
        ...

    def subscribe(
        self, wake: Callable[[], None], *, queue: str | None = None
    ) -> AbstractContextManager[Any] | None:
        """Call ``wake``, from any thread, when there may be new work of the queue (None: of any).

        While the context is entered; None where the database has no push.
        """
        ...

    def get_job(self, job_id: str, *, touch_at: float | None = None) -> BatchJob | None:
        """The job, None when unknown; ``touch_at`` also sets its lease."""
        ...

    def get_targets(
        self,
        job_id: str,
        *,
        start: int = 0,
        limit: int | None = None,
        with_results: bool = True,
        max_bytes: int | None = None,
    ) -> list[BatchTarget] | None:
        """The targets from index ``start`` on in order, None for an unknown job.

        With ``max_bytes`` it stops before the target whose result would take the results over
        it, but hands out at least one.
        """
        ...

    def touch_job(self, job_id: str, *, now: float) -> None:
        """Set the lease; raises ``JobNotFound``."""
        ...

    def count_live_jobs(self, caller: str | None = None) -> int:
        """How many jobs are queued or running, of one caller or of all."""
        ...

    def sweep(self, *, now: float, ttl: timedelta, limit: int | None = None) -> int:
        """Delete jobs whose ``lease + ttl <= now``; the count."""
        ...

    def evict_oldest(self, *, max_bytes: int, limit: int | None = None) -> int:
        """Delete finished jobs, oldest lease first, until the total fits; the count."""
        ...

    def now(self) -> float:
        """The store's own clock, in unix seconds."""
        ...
