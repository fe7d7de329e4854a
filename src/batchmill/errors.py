"""Every exception of batchmill, one small tree.

No message holds SQL, a statement's parameters, a password or a URL. What a database driver said
is kept as ``__cause__``.
"""

from __future__ import annotations


class BatchmillError(Exception):
    """The root: ``except BatchmillError`` catches all that batchmill raises of its own."""


class InvalidInput(BatchmillError, ValueError):
    """An argument can't be used; the message names it, what was wrong and what to do."""


class RunnerClosed(BatchmillError):
    """The runner has been closed, or is draining, and takes no more jobs."""


class InternalError(BatchmillError):
    """What hooks get when a fetch failed by a mistake in code; never holds the value."""

    def __init__(self, message: str = "internal error") -> None:
        super().__init__(message)


class TargetError(BatchmillError):
    """Raised by a fetch: this target failed, with a hint for whoever reads the result.

    ``status`` is the HTTP status that belongs to the failure, for the application's hooks; the
    runner ignores it (spec/seed-001, Interfaces).
    """

    def __init__(self, message: str, hint: str = "", status: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.status = status


class RetryLater(BatchmillError):
    """Raised by a fetch: the target was only busy, try it again later.

    ``after`` is in seconds, None for the runner's ``retry_wait``; the runner clamps it between
    its ``retry_wait`` and its ``retry_for``.
    """

    def __init__(self, message: str = "retry later", after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class SubmitRejected(BatchmillError):
    """A submit was turned down; nothing was stored."""

    text = "rejected"

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.text)


class NoTargets(SubmitRejected):
    """The list of targets was empty."""

    text = "no targets"


class TooManyTargets(SubmitRejected):
    """More targets than ``targets_per_job``."""

    text = "too many targets"


class CallerBusy(SubmitRejected):
    """The caller has ``jobs_per_caller`` live jobs already."""

    text = "busy"


class Busy(SubmitRejected):
    """The store has ``jobs_total`` live jobs already."""

    text = "jobs busy"


class StoreError(BatchmillError):
    """Something went wrong in a store."""


class JobExists(StoreError):
    """A job of this id is already stored."""


class JobNotFound(StoreError):
    """No job of this id is stored: it never was, was swept, evicted or deleted."""


class TargetExists(StoreError):
    """The job already has a target of this index."""


class TargetNotFound(StoreError):
    """The job has no target of this index, or there is no such job."""


class InvalidTransition(StoreError):
    """The status asked for can't follow the one that is stored."""


class StoreBusy(StoreError):
    """The database stayed locked for longer than batchmill waits; trying again is safe."""


class StoreUnavailable(StoreError):
    """The database can't be reached or opened."""


class StoreFull(StoreError):
    """The database has no room for a write: free space, sweep or evict."""


class MigrationError(StoreError):
    """The database's tables don't fit this version of batchmill."""


class NotMigrated(MigrationError):
    """The database has none of batchmill's tables: run an upgrade."""


class SchemaBehind(MigrationError):
    """The tables are of an older batchmill: run an upgrade."""


class SchemaAhead(MigrationError):
    """The tables are of a newer batchmill: upgrade the package."""
