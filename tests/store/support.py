"""Jobs to store, and the calls that most tests make in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from batchmill.records import Admission, BatchJob, BatchTarget, Claim, Exchange, Limits, Outcome

HOUR = timedelta(hours=1)
WIDE = Limits(targets_per_job=10_000, jobs_per_caller=100_000, jobs_total=100_000)


def job(job_id: str, **fields: Any) -> BatchJob:
    """A job with a key of its own, used last at second 100."""
    given = {"caller": "c", "caller_class": "restricted", "idem_key": f"key-{job_id}"}
    given |= {"created_at": 100, "lease": 100} | fields
    return BatchJob(id=job_id, **given)


def targets(count: int, **fields: Any) -> list[BatchTarget]:
    """So many pending targets."""
    return [BatchTarget("", idx, f"u{idx}", **fields) for idx in range(count)]


def submit(store: Any, job_id: str, count: int = 1, **given: Any) -> Admission:
    """Submit a job with so many targets, shared, at second 100, under wide caps."""
    options = {"queue": "default", "home": None, "limits": WIDE, "now": 100, "ttl": HOUR}
    fields = {name: given.pop(name) for name in ("caller", "idem_key") if name in given}
    new = job(job_id, targets_total=count, **fields)
    admission: Admission = store.submit_job(new, targets(count), **(options | given))
    return admission


def exchange(store: Any, outcomes: Sequence[Outcome] = (), **given: Any) -> Exchange:
    """An exchange of runner r at second 100 that wants one target."""
    options: dict[str, Any] = {"queue": "default", "want": 1, "shared": True, "now": 100}
    options |= {"hold_for": 60, "max_bytes": 10**12} | given
    answer: Exchange = store.exchange(options.pop("runner_id", "r"), outcomes, **options)
    return answer


def done(claim: Claim, result: str = "{}") -> Outcome:
    """The claim's target is done."""
    return Outcome(claim.job_id, claim.idx, claim.token, "done", result=result)


def finish(store: Any, job_id: str, result: str = "{}", **given: Any) -> None:
    """Submit a job of one target and store its result."""
    submit(store, job_id, **given)
    (claim,) = exchange(store).claims
    exchange(store, [done(claim, result)], want=0)
