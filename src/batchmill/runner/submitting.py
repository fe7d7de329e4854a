"""From an application's targets to a stored job."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Generic, TypeVar

from batchmill.errors import Busy, CallerBusy, InvalidInput, NoTargets, StoreError
from batchmill.records import Admission, BatchJob, BatchTarget, Limits
from batchmill.runner.after import AfterCommit
from batchmill.runner.callers import KeptCallers
from batchmill.runner.canonical import canonical_json
from batchmill.runner.config import Caller
from batchmill.runner.identity import Identity
from batchmill.runner.logs import Log
from batchmill.runner.protocol import JobStore
from batchmill.runner.reports import Submission
from batchmill.runner.rules import JOB_ID_RANDOM_BYTES, idempotency_key, new_job_id
from batchmill.runner.targets import Target
from batchmill.validation import check_name

C = TypeVar("C", bound=Caller)


class Submitter(Generic[C]):
    """Submits for one runner; ``sweep`` is one bounded sweep, for room under the caps."""

    def __init__(
        self,
        store: JobStore,
        identity: Callable[[], Identity],
        kept: KeptCallers[C],
        after: AfterCommit,
        *,
        limits: Limits,
        ttl: timedelta,
        sweep: Callable[[], int],
        logger: Log,
    ) -> None:
        self._store = store
        self._identity = identity
        self._kept = kept
        self._after = after
        self._limits = limits
        self._ttl = ttl
        self._sweep = sweep
        self._logger = logger

    def submit(
        self,
        caller: C,
        targets: Iterable[Target | str],
        *,
        caller_class: str,
        within: Any,
        now: float,
    ) -> Submission:
        """See ``Runner.submit``."""
        listed = listed_targets(targets)
        me = self._identity()
        job, rows = new_job(_name_of(caller), caller_class, listed, queue=me.queue, now=now)
        if not me.shared:
            self._kept.keep(job.id, caller)
        self._after.submitting(job.id)
        try:
            admission = self._admitted(me, job, rows, now=now, within=within)
        except BaseException:
            self._after.not_stored(job.id)
            raise
        return self._answer(admission, job, within=within)

    def _admitted(
        self, me: Identity, job: BatchJob, rows: list[BatchTarget], *, now: float, within: Any
    ) -> Admission:
        ask = partial(
            self._store.submit_job,
            job,
            rows,
            queue=me.queue,
            home=None if me.shared else me.id,
            limits=self._limits,
            now=now,  # not floored: it is also when the home was last seen
            ttl=self._ttl,
            within=within,
        )
        admission = ask()
        if admission.rejected in {CallerBusy, Busy} and within is None and self._made_room():
            admission = ask()
        if admission.rejected is not None:
            raise admission.rejected
        return admission

    def _made_room(self) -> bool:
        """Once before rejecting on a cap (design.md section 5, Sweeping)."""
        try:
            return self._sweep() > 0
        except StoreError as error:
            self._logger.warning("sweep: store error (%s)", type(error).__name__)
            return False

    def _answer(self, admission: Admission, job: BatchJob, *, within: Any) -> Submission:
        if admission.job_id != job.id:
            self._after.not_stored(job.id)
        if admission.job_id is None:  # a store that keeps no contract
            raise StoreError("the store neither took the job nor said why")
        if admission.reused:
            self._after.reused()
        elif within is None:
            self._after.seen(job.id)
        else:
            self._after.submitting(job.id, until=job.created_at + self._ttl.total_seconds())
        return Submission(admission.job_id, admission.reused)


def _name_of(caller: Any) -> str:
    if not hasattr(caller, "name"):
        raise InvalidInput("caller: must have a name (str), like any batchmill.runner.Caller")
    return check_name("caller.name", caller.name)


def listed_targets(targets: Iterable[Target | str]) -> list[Target]:
    """Targets of what was given; a plain text is one. Raises ``NoTargets``, ``InvalidInput``."""
    if isinstance(targets, (str, bytes, Target)):
        raise InvalidInput("targets: must be a list of targets; wrap a single one in a list")
    if isinstance(targets, (Mapping, AbstractSet)) or not isinstance(targets, Iterable):
        kind = type(targets).__name__
        raise InvalidInput(f"targets: must be a list of targets, in order, not {kind}")
    given = list(targets)
    if not given:
        raise NoTargets
    return [_target(number, each) for number, each in enumerate(given)]


def _target(number: int, given: object) -> Target:
    if isinstance(given, Target):
        return given
    if not isinstance(given, str):
        kind = type(given).__name__
        raise InvalidInput(f"targets[{number}]: must be a Target or a URL (str), not {kind}")
    try:
        return Target(given)
    except InvalidInput as error:
        raise InvalidInput(f"targets[{number}].{error}") from None


def new_job(
    caller_name: str, caller_class: str, targets: list[Target], *, queue: str, now: float
) -> tuple[BatchJob, list[BatchTarget]]:
    """The rows of a job that is submitted ``now`` (spec/seed-001, rule 1)."""
    seconds = math.floor(now)
    job = BatchJob(
        id=new_job_id(now, os.urandom(JOB_ID_RANDOM_BYTES)),
        caller=caller_name,
        caller_class=check_name("caller_class", caller_class),
        idem_key="",
        targets_total=len(targets),
        created_at=seconds,
        lease=seconds,
    )
    rows = [
        BatchTarget(job.id, idx, target.url, _options_json(idx, target))
        for idx, target in enumerate(targets)
    ]
    key = idempotency_key(caller_name, [(row.url, row.options) for row in rows], queue=queue)
    return replace(job, idem_key=key), rows


def _options_json(number: int, target: Target) -> str:
    try:
        return canonical_json(target.options)
    except InvalidInput as error:
        raise InvalidInput(f"targets[{number}].options: {error}") from None
