"""How a runner is set up: its limits, its hooks, and what a caller has to be."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Final, Protocol

from batchmill.errors import InvalidInput
from batchmill.validation import MAX_BYTES, check_callable, check_count

INTERNAL_ERRORS: Final[tuple[type[BaseException], ...]] = (
    TypeError,
    AttributeError,
    NameError,
    LookupError,
    AssertionError,
    ArithmeticError,
    RecursionError,
    MemoryError,
    NotImplementedError,
    StopIteration,
)
"""The exceptions that say that the code is wrong, what Go calls a panic (design.md section 5)."""

MAX_DURATION: Final = timedelta(days=36525)
"""A hundred years: what a store can still add to a time."""


class Caller(Protocol):
    """Who submits a job: anything with a name; the rest is between the application and itself."""

    @property
    def name(self) -> str:
        """What caps and idempotency go by: at most 255 characters, no NUL."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerConfig:
    """The limits of one runner; every field has the default of design.md section 5.

    Raises ``InvalidInput``, which names the field, for zero, negative or nonsense. More
    ``workers`` than ``worker_limit`` are clamped, with a ``UserWarning``.
    """

    ttl: timedelta = timedelta(hours=24)
    """How long a job is kept after its last use; sweeping comes after it."""
    targets_per_job: int = 32
    jobs_per_caller: int = 1
    """The cap on one caller's live jobs."""
    jobs_total: int = 8
    """The cap on the live jobs of the whole store."""
    workers: int = 1
    """How many targets this runner fetches at a time, each of another job."""
    worker_limit: int = 2
    """What ``workers`` is clamped to: raise it to scale."""
    max_bytes: int = 64 * 1024 * 1024
    """The budget of all stored results together."""
    retry_wait: timedelta = timedelta(seconds=2)
    """The pause before a busy target is tried again."""
    retry_for: timedelta = timedelta(minutes=10)
    """How long one target may keep coming back busy."""
    max_result_bytes: int | None = None
    """The most UTF-8 bytes of one result's JSON; None for no limit of its own."""
    hold_for: timedelta = timedelta(seconds=60)
    """How long a target in flight stays this runner's without a word from it."""
    poll_interval: timedelta = timedelta(seconds=1)
    """How often an idle runner looks for the work that others put in its database."""
    max_attempts: int = 3
    """The loss of a runner that fails its target; retries are not counted."""
    internal_errors: tuple[type[BaseException], ...] = INTERNAL_ERRORS
    """What is stored as "internal error"; what isn't an ``Exception`` always is."""

    def __post_init__(self) -> None:
        for field in ("ttl", "retry_wait", "retry_for", "hold_for", "poll_interval"):
            _check_duration(field, getattr(self, field), bounded=field != "ttl")
        for field in (
            "targets_per_job",
            "jobs_per_caller",
            "jobs_total",
            "workers",
            "worker_limit",
            "max_attempts",
        ):
            check_count(field, getattr(self, field), least=1)
        check_count("max_bytes", self.max_bytes, least=1, most=MAX_BYTES)
        if self.max_result_bytes is not None:
            check_count("max_result_bytes", self.max_result_bytes, least=1, most=MAX_BYTES)
        object.__setattr__(self, "internal_errors", _error_classes(self.internal_errors))
        if self.workers > self.worker_limit:
            self._clamp_workers()

    def _clamp_workers(self) -> None:
        """spec/seed-001, Config: workers above the limit are clamped to it."""
        warnings.warn(
            f"workers={self.workers} is more than worker_limit={self.worker_limit}: "
            f"running {self.worker_limit}; raise worker_limit to scale",
            UserWarning,
            stacklevel=4,
        )
        object.__setattr__(self, "workers", self.worker_limit)


def _check_duration(field: str, value: object, *, bounded: bool) -> None:
    if not isinstance(value, timedelta):
        raise InvalidInput(f"{field}: must be a timedelta, not {type(value).__name__}")
    if value <= timedelta(0):
        raise InvalidInput(f"{field}: must be more than 0")
    if bounded and value > MAX_DURATION:
        raise InvalidInput(f"{field}: must be at most {MAX_DURATION.days} days")


def _error_classes(value: object) -> tuple[type[BaseException], ...]:
    classes = value if isinstance(value, tuple) else None
    if classes is None or not all(
        isinstance(kind, type) and issubclass(kind, BaseException) for kind in classes
    ):
        raise InvalidInput("internal_errors: must be a tuple of exception classes")
    return classes


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """What an application observes, for metrics say; each is optional (spec/seed-001, Interfaces).

    All are called after the commit, in outcome order, by one thread at a time: target, job,
    job_seconds, depth. One that raises is logged and changes nothing; one that blocks holds up
    the hooks after it and the worker that called it.
    """

    job: Callable[[str], object] | None = None
    """A job was ``created``, ``reused``, or ended: ``done``, ``partial``, ``failed``,
    ``cancelled``."""
    target: Callable[[BaseException | None, float, int], object] | None = None
    """A target was stored: the error (None on success, ``InternalError`` for a panic), the
    seconds of its fetch, the UTF-8 bytes of its result."""
    job_seconds: Callable[[float], object] | None = None
    """A job ended: the seconds since its submit."""
    depth: Callable[[int], object] | None = None
    """The live jobs in the store, after every change."""
    inflight: Callable[[int], object] | None = None
    """The targets that this runner is fetching, after every change."""

    def __post_init__(self) -> None:
        for each in fields(self):
            if getattr(self, each.name) is not None:
                check_callable(each.name, getattr(self, each.name))
