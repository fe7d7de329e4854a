"""Checks of whole records that come in, the same for every store; see :mod:`batchmill.validation`.

Each function returns the record to store, with texts and statuses in their own types.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, get_args

from batchmill.errors import InvalidInput, TargetExists
from batchmill.records import (
    BatchJob,
    BatchTarget,
    Limits,
    Outcome,
    OutcomeKind,
    TargetStatus,
)
from batchmill.validation import (
    MAX_BYTES,
    MAX_COUNT,
    check_count,
    check_id,
    check_job_status,
    check_name,
    check_optional_text,
    check_seconds,
    check_target_status,
    check_text,
    check_time,
    is_plain,
)


def check_job(job: Any) -> BatchJob:
    """A job that can be stored as it is, its times floored."""
    if not isinstance(job, BatchJob):
        raise InvalidInput(f"job: must be a BatchJob, not {type(job).__name__}")
    return BatchJob(
        id=check_id("job.id", job.id),
        caller=check_name("job.caller", job.caller),
        caller_class=check_name("job.caller_class", job.caller_class),
        idem_key=check_name("job.idem_key", job.idem_key),
        status=check_job_status("job.status", job.status),
        error=check_text("job.error", job.error),
        targets_total=check_count("job.targets_total", job.targets_total),
        targets_done=check_count("job.targets_done", job.targets_done),
        created_at=check_seconds("job.created_at", job.created_at),
        lease=check_seconds("job.lease", job.lease),
        nbytes=check_count("job.nbytes", job.nbytes, most=MAX_BYTES),
    )


def check_target(job_id: str, target: Any) -> BatchTarget:
    """A target of this job that can be stored as it is; its own ``job_id`` may be empty."""
    if not isinstance(target, BatchTarget):
        raise InvalidInput(f"targets: must be BatchTarget, not {type(target).__name__}")
    if _is_fit(job_id, target):
        return target
    if check_text("target.job_id", target.job_id) not in ("", job_id):
        raise InvalidInput("target.job_id: names another job; leave it empty or give this job's")
    return BatchTarget(
        job_id,
        check_count("target.idx", target.idx),
        check_text("target.url", target.url),
        check_text("target.options", target.options),
        check_target_status("target.status", target.status),
        check_optional_text("target.result", target.result),
        check_optional_text("target.error", target.error),
        check_optional_text("target.hint", target.hint),
    )


def _is_fit(job_id: str, target: BatchTarget) -> bool:
    """Whether it is like most: new, and nothing in it to be refused or changed."""
    return (
        (target.status, target.result, target.error, target.hint) == _NEW
        and type(target.status) is TargetStatus
        and target.job_id == job_id
        and type(target.job_id) is str
        and type(target.idx) is int
        and 0 <= target.idx <= MAX_COUNT
        and is_plain(target.url)
        and is_plain(target.options)
    )


def check_targets(job_id: str, targets: Any) -> list[BatchTarget]:
    """Targets of one job, each index once; raises ``TargetExists`` for an index given twice."""
    checked = [check_target(job_id, each) for each in listed("targets", targets, "BatchTarget")]
    if len({target.idx for target in checked}) < len(checked):
        raise TargetExists("targets: the same index is given twice")
    return checked


def listed(field: str, values: Any, kind: str) -> list[Any]:
    """Several of a kind, in a list or whatever else hands them out one by one."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidInput(f"{field}: must be a list of {kind}, not {type(values).__name__}")
    return list(values)


_NEW_JOB: Final = {"status": "queued", "error": "empty", "targets_done": "0", "nbytes": "0"}
_NEW_TARGET: Final = {"status": "pending", "result": "None", "error": "None", "hint": "None"}
"""What is asked of a submit's records, in words."""
_NEW: Final = (TargetStatus.PENDING, None, None, None)


def check_submission(job: Any, targets: Any) -> tuple[BatchJob, list[BatchTarget]]:
    """A new job with its targets, as a submit stores them: nothing started, nothing counted."""
    new = check_job(job)
    checked = check_targets(new.id, targets)
    _check_new("job", new, BatchJob("", "", "", ""), _NEW_JOB)
    if new.targets_total != len(checked):
        raise InvalidInput("job.targets_total: must be the number of targets")
    for idx, target in enumerate(checked):
        if target.idx != idx:
            raise InvalidInput("target.idx: must count up from 0 in the order given")
        if (target.status, target.result, target.error, target.hint) != _NEW:
            _check_new("target", target, BatchTarget("", 0, ""), _NEW_TARGET)
    return new, checked


def _check_new(what: str, record: object, new: object, words: Mapping[str, str]) -> None:
    """Nothing may be in a record yet that only its life brings."""
    for name, word in words.items():
        if getattr(record, name) != getattr(new, name):
            raise InvalidInput(f"{what}.{name}: must be {word} in a submit")


def check_written(
    status: TargetStatus, result: Any, error: Any, hint: Any
) -> tuple[str | None, str | None, str | None]:
    """The texts of a target written by hand: an unfinished one has none (spec/seed-000, Schema)."""
    texts = (
        check_optional_text("result", result),
        check_optional_text("error", error),
        check_optional_text("hint", hint),
    )
    if not status.finished and texts != (None, None, None):
        raise InvalidInput("status: only a done or failed target has a result, an error or a hint")
    return texts


def check_limits(limits: Any) -> Limits:
    """Caps of at least 1 each."""
    if not isinstance(limits, Limits):
        raise InvalidInput(f"limits: must be Limits, not {type(limits).__name__}")
    for name in ("targets_per_job", "jobs_per_caller", "jobs_total"):
        check_count(f"limits.{name}", getattr(limits, name), least=1)
    return limits


def check_outcomes(outcomes: Any) -> list[Outcome]:
    """The outcomes of one exchange; see :func:`check_outcome`."""
    return [check_outcome(each) for each in listed("outcomes", outcomes, "Outcome")]


def check_tokens(tokens: Any) -> list[str]:
    """Tokens of claims, current or not."""
    return [check_text("token", each) for each in listed("tokens", tokens, "tokens")]


def check_outcome(outcome: Any) -> Outcome:
    """An outcome whose kind and time can be used; its texts are judged by :func:`storable`."""
    if not isinstance(outcome, Outcome):
        raise InvalidInput(f"outcome: must be an Outcome, not {type(outcome).__name__}")
    if outcome.kind not in _KINDS:
        raise InvalidInput(f"outcome.kind: must be one of {', '.join(_KINDS)}")
    check_id("outcome.job_id", outcome.job_id)
    check_count("outcome.idx", outcome.idx)
    check_text("outcome.token", outcome.token)
    if outcome.ready_at is not None:
        check_time("outcome.ready_at", outcome.ready_at)
    return _in_plain_text(outcome)


_KINDS: Final = get_args(OutcomeKind)
_TEXTS: Final = ("job_id", "token", "result", "error", "hint")
_PLAIN: Final = {str, type(None)}


def _in_plain_text(outcome: Outcome) -> Outcome:
    """The outcome with an enum's member, say, as its text: a driver may take another."""
    values: dict[str, Any] = {name: getattr(outcome, name) for name in _TEXTS}
    if set(map(type, values.values())) <= _PLAIN:
        return outcome
    odd: dict[str, Any] = {
        name: str.__str__(value)
        for name, value in values.items()
        if isinstance(value, str) and type(value) is not str
    }
    return replace(outcome, **odd)


def storable(outcome: Outcome) -> Outcome:
    """The outcome, or the failure to store in its place when a text of it can't be stored.

    One bad text must not keep the rest of a set from being stored (cases.md 22).
    """
    try:
        check_optional_text("result", outcome.result)
        check_optional_text("error", outcome.error)
        check_optional_text("hint", outcome.hint)
    except InvalidInput as error:
        return unstorable(outcome, str(error))
    return outcome


def unstorable(outcome: Outcome, why: str) -> Outcome:
    """What is stored for an outcome that can't be stored itself."""
    kind: OutcomeKind = "fail_job" if outcome.kind == "fail_job" else "failed"
    text = f"the outcome can't be stored: {why}"
    return replace(outcome, kind=kind, result=None, error=text, hint=None)
