"""Who a claimed job's caller is: kept in memory, or made anew from its name."""

from __future__ import annotations

import threading
from typing import Generic, Protocol, TypeVar

from batchmill.records import Claim
from batchmill.runner.config import Caller
from batchmill.runner.protocol import ResolveCaller

C = TypeVar("C", bound=Caller)
C_co = TypeVar("C_co", bound=Caller, covariant=True)


class CallerSource(Protocol[C_co]):
    """Where a fetch's caller comes from."""

    unknown: str
    """The error of a job whose caller there is none of."""

    def find(self, claim: Claim) -> C_co | None:
        """The caller, None when there is none of this name; may raise."""
        ...


class ResolvedCallers(Generic[C]):
    """Shared: the application makes callers of their names, whichever process took the job."""

    unknown: str = "unknown caller"

    def __init__(self, resolve: ResolveCaller[C]) -> None:
        self._resolve = resolve

    def find(self, claim: Claim) -> C | None:
        """What the application says; may raise anything."""
        return self._resolve(claim.caller, claim.caller_class)


class KeptCallers(Generic[C]):
    """Local: callers live in memory only, from before their job can be claimed to its end."""

    unknown: str = "its caller is not in this process"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_job: dict[str, C] = {}
        self._stored: set[str] = set()

    def __len__(self) -> int:
        return len(self._by_job)

    def find(self, claim: Claim) -> C | None:
        """The caller as it was given at the submit."""
        return self._by_job.get(claim.job_id)

    def keep(self, job_id: str, caller: C) -> None:
        """Called before the job is stored, since it may be claimed before the submit returns."""
        with self._lock:
            self._by_job[job_id] = caller

    def stored(self, job_id: str) -> None:
        """The job's transaction has committed: when it isn't in the store, it is gone."""
        with self._lock:
            if job_id in self._by_job:
                self._stored.add(job_id)

    def forget(self, job_id: str) -> None:
        """The job has ended, was refused or is gone."""
        with self._lock:
            self._by_job.pop(job_id, None)
            self._stored.discard(job_id)

    def of_stored_jobs(self) -> list[str]:
        """The jobs whose callers are kept and that have been stored."""
        with self._lock:
            return list(self._stored)
