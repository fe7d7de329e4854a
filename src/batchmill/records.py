"""What a store holds and what it takes and hands out: plain, frozen records.

Times are unix seconds. Those that are kept (``created_at``, ``lease``) are whole; those that only
pace the work (``ready_at``, ``busy_since``) may have a fraction. Nothing here knows a database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal, TypeAlias

from batchmill.errors import SubmitRejected
from batchmill.quick import quick


class JobStatus(StrEnum):
    """Where a job is in its life (spec/seed-000, Schema)."""

    QUEUED = "queued"
    """Stored; none of its targets has been started."""
    RUNNING = "running"
    """At least one target has been started."""
    DONE = "done"
    """Finished: every target is done."""
    PARTIAL = "partial"
    """Finished: some targets are done, some failed."""
    FAILED = "failed"
    """Finished: every target failed, or the job as a whole did (``error`` says why)."""
    CANCELLED = "cancelled"
    """Ended by a cancel; targets that were not started stay pending."""

    @property
    def live(self) -> bool:
        """True until the job has ended; a live job counts against the caps."""
        return self in LIVE_STATUSES

    @property
    def terminal(self) -> bool:
        """True once the job has ended; a terminal status is never left again."""
        return self not in LIVE_STATUSES


class TargetStatus(StrEnum):
    """Where one target is (spec/seed-000, Schema)."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"

    @property
    def finished(self) -> bool:
        """True for done and failed: those are what ``targets_done`` counts."""
        return self in FINISHED_STATUSES


class CallerClass(StrEnum):
    """The two classes of the seed; a store takes any other text of up to 255 characters too."""

    FLEET = "fleet"
    RESTRICTED = "restricted"


LIVE_STATUSES: Final = frozenset({JobStatus.QUEUED, JobStatus.RUNNING})
FINISHED_STATUSES: Final = frozenset({TargetStatus.DONE, TargetStatus.FAILED})
KEY_STATUSES: Final = LIVE_STATUSES | {JobStatus.DONE, JobStatus.PARTIAL}
"""The statuses of jobs that answer an idempotency key: a failed or cancelled one does not."""


@dataclass(frozen=True, slots=True)
class BatchJob:
    """One row of ``batch_job``.

    Who creates a job sets everything; from then on the store keeps ``targets_done`` (the count of
    done and failed targets), ``nbytes`` (the UTF-8 bytes of the stored results) and ``lease`` (the
    last use; the job may be swept once ``lease + ttl`` has passed).
    """

    id: str
    caller: str
    caller_class: str
    idem_key: str
    status: JobStatus = JobStatus.QUEUED
    error: str = ""
    targets_total: int = 0
    targets_done: int = 0
    created_at: int = 0
    lease: int = 0
    nbytes: int = 0


@quick
@dataclass(frozen=True, slots=True)
class BatchTarget:
    """One row of ``batch_target``: ``options`` and ``result`` are JSON text.

    ``result``, ``error`` and ``hint`` are None until the target has finished; ``result`` is also
    None where it was not asked for.
    """

    job_id: str
    idx: int
    url: str
    options: str = "{}"
    status: TargetStatus = TargetStatus.PENDING
    result: str | None = None
    error: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class StoreStats:
    """What a store has answered since its repository object was made, and what it holds.

    ``hits`` and ``misses`` are by accessor name, ``jobs`` and ``targets`` are counts by status,
    ``oldest_lease`` is None when there is no job.
    """

    hits: Mapping[str, int]
    misses: Mapping[str, int]
    jobs: Mapping[str, int]
    targets: Mapping[str, int]
    nbytes: int
    oldest_lease: int | None


@dataclass(frozen=True, slots=True)
class Limits:
    """The caps that a submit is held to; each at least 1."""

    targets_per_job: int
    jobs_per_caller: int
    jobs_total: int


@dataclass(frozen=True, slots=True)
class Admission:
    """The answer to a submit: either a job id (``reused`` when the key answered), or why not."""

    job_id: str | None
    reused: bool
    rejected: type[SubmitRejected] | None


@quick
@dataclass(frozen=True, slots=True)
class Claim:
    """One target that a runner now holds; ``token`` is the fence of this one attempt.

    ``attempt`` is 1 plus the earlier starts of this target. ``busy_since`` is when it first came
    back busy, None when it never did.
    """

    job_id: str
    idx: int
    token: str
    attempt: int
    busy_since: float | None
    caller: str
    caller_class: str
    url: str
    options: str


OutcomeKind: TypeAlias = Literal["done", "failed", "later", "put_back", "fail_job"]


@quick
@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a claim.

    ``done`` and ``failed`` store the target. ``later`` makes it pending again, not to be tried
    before ``ready_at``; the first such outcome starts its ``busy_since``. ``put_back`` makes it
    pending again at once and leaves ``busy_since`` alone. ``fail_job`` ends the whole job as
    failed with ``error`` and leaves the target pending.
    """

    job_id: str
    idx: int
    token: str
    kind: OutcomeKind
    result: str | None = None
    error: str | None = None
    hint: str | None = None
    ready_at: float | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """A job that got its terminal status in this very transaction."""

    job_id: str
    status: JobStatus
    created_at: float


@dataclass(frozen=True, slots=True)
class Exchange:
    """What one exchange did.

    ``stored``: tokens whose target is now stored, done or failed. ``refused``: tokens that are no
    longer current; nothing was changed for them. ``unstorable``: tokens (also in ``stored``) whose
    outcome could not be stored as it was, so that the target was stored as failed. ``settled``:
    the jobs that ended here. ``cancelled``: jobs that this runner still has in flight and that
    have been cancelled. ``next_ready_at``: when the next waiting target becomes ready, None when
    none waits (known only when fewer targets were claimed than wanted).
    """

    claims: Sequence[Claim] = ()
    stored: Sequence[str] = ()
    refused: Sequence[str] = ()
    unstorable: Sequence[str] = ()
    settled: Sequence[Settled] = ()
    cancelled: Sequence[str] = ()
    next_ready_at: float | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """The answer to a renewal: tokens that are no longer current, and jobs cancelled meanwhile."""

    lost: Sequence[str] = ()
    cancelled: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Released:
    """What became of the work of lost runners.

    ``put_back``: targets back in the rotation. ``failed``: tokens of targets that were stored as
    failed because it was their last allowed loss. ``settled``: the jobs that ended here.
    """

    put_back: int = 0
    failed: Sequence[str] = ()
    settled: Sequence[Settled] = ()


RUNNER_LOST: Final = "runner lost"
"""The error of a target, or a local job, whose runner went away without a word."""


def status_of_finished(targets_total: int, targets_failed: int) -> JobStatus:
    """The terminal status of a job whose last target was stored (spec/seed-001, rule 4)."""
    if targets_failed == 0:
        return JobStatus.DONE
    if targets_failed == targets_total:
        return JobStatus.FAILED
    return JobStatus.PARTIAL


def stored_bytes(result: str | None) -> int:
    """What a result counts for in ``nbytes``: its UTF-8 bytes, 0 for none."""
    if result is None:
        return 0
    return len(result) if result.isascii() else len(result.encode())
