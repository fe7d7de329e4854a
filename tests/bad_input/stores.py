"""Every method of a store, each argument with its rule: the other half of the documented table.

A dotted name is a field of what the argument holds: of the job, of one of the targets.
"""

from __future__ import annotations

from typing import Final

from tests.bad_input import rules as r
from tests.bad_input.rules import Rule, optional, same

Table = dict[str, dict[str, Rule]]

_JOB: Final[dict[str, Rule]] = {
    "job": r.JOB,
    "job.id": r.FREE_ID,
    "job.caller": r.NAME,
    "job.caller_class": r.NAME,
    "job.idem_key": r.NAME,
    "job.status": r.JOB_STATUS,
    "job.error": r.TEXT,
    "job.targets_total": r.COUNT,
    "job.targets_done": r.COUNT,
    "job.created_at": r.TIME,
    "job.lease": r.TIME,
    "job.nbytes": r.SIZE,
}
_TARGETS: Final[dict[str, Rule]] = {
    "targets": r.ROWS,
    "target.job_id": r.TEXT.but(
        "own id", "the id of this job, or empty", same("a text, a str enum, too long", r.OTHER_JOB)
    ),
    "target.idx": r.COUNT,
    "target.url": r.TEXT,
    "target.options": r.TEXT,
    "target.status": r.TARGET_STATUS,
    "target.result": optional(r.TEXT),
    "target.error": optional(r.TEXT),
    "target.hint": optional(r.TEXT),
}
_NO_TEXT: Final = optional(r.TEXT).but(
    "no text yet", "None", same("empty, a text, a str enum, too long", "must be None in a submit")
)
_NO_COUNT: Final = same("a whole number", "must be 0 in a submit")
_SUBMITTED: Final[dict[str, Rule]] = {
    **_JOB,
    "job.error": r.TEXT.but(
        "no error yet", "empty", same("a text, a str enum, too long", "must be empty in a submit")
    ),
    "job.targets_total": r.COUNT.but(
        "number of targets",
        "how many targets there are",
        same("0, a whole number", "must be the number of targets"),
    ),
    "job.targets_done": r.COUNT.but("nothing done", "0", _NO_COUNT),
    "job.nbytes": r.SIZE.but("no bytes", "0", _NO_COUNT),
    **_TARGETS,
    "target.idx": r.COUNT.but("place", "its place in the list", {"a whole number": r.IN_ORDER}),
    "target.result": _NO_TEXT,
    "target.error": _NO_TEXT,
    "target.hint": _NO_TEXT,
}
_LIMITS: Final[dict[str, Rule]] = {
    "limits": r.LIMITS,
    "limits.targets_per_job": r.COUNT_FROM_1,
    "limits.jobs_per_caller": r.COUNT_FROM_1,
    "limits.jobs_total": r.COUNT_FROM_1,
}
_OUTCOMES: Final[dict[str, Rule]] = {
    "outcomes": r.OUTCOMES,
    "outcome.job_id": r.ID,
    "outcome.idx": r.INDEX,
    "outcome.token": r.TOKEN,
    "outcome.kind": r.OUTCOME_KIND,
    "outcome.result": r.BROUGHT,
    "outcome.error": r.BROUGHT,
    "outcome.hint": r.BROUGHT,
    "outcome.ready_at": optional(r.TIME),
}

REPOSITORY: Final[Table] = {
    "create_job": _JOB,
    "get_job": {"job_id": r.ID, "touch_at": optional(r.TIME)},
    "find_job_by_idem_key": {
        "caller": r.CALLER,
        "idem_key": r.CALLER.but("key", "an idempotency key", {}),
        "now": r.TIME,
        "ttl": r.TTL,
    },
    "count_live_jobs": {"caller": optional(r.CALLER)},
    "put_targets": {"job_id": r.ID, **_TARGETS},
    "get_targets": {
        "job_id": r.ID,
        "start": r.COUNT,
        "limit": optional(r.COUNT),
        "with_results": r.FLAG,
        "max_bytes": optional(r.SIZE),
    },
    "update_target": {
        "job_id": r.ID,
        "idx": r.INDEX,
        "now": r.TIME,
        "status": r.TARGET_STATUS,
        "result": optional(r.TEXT),
        "error": optional(r.TEXT),
        "hint": optional(r.TEXT),
    },
    "set_job_status": {
        "job_id": r.ID,
        "status": r.JOB_STATUS,
        "now": r.TIME,
        "error": r.TEXT,
    },
    "touch_job": {"job_id": r.ID, "now": r.TIME},
    "sweep": {"now": r.TIME, "ttl": r.TTL, "limit": optional(r.COUNT)},
    "evict_oldest": {"max_bytes": r.SIZE, "limit": optional(r.COUNT)},
    "mark_in_flight_failed": {"reason": r.TEXT, "now": r.TIME},
    "list_jobs": {
        "caller": optional(r.CALLER),
        "status": optional(r.JOB_STATUS),
        "after": optional(r.ID),
        "limit": optional(r.COUNT),
    },
    "delete_job": {"job_id": r.ID},
    "nbytes": {},
    "stats": {},
    "now": {},
}
JOB_STORE: Final[Table] = {
    "submit_job": {
        **_SUBMITTED,
        "queue": r.FULL_NAME,
        "home": optional(r.FREE_ID),
        **_LIMITS,
        "now": r.TIME,
        "ttl": r.TTL,
        "within": r.WITHIN,
    },
    "exchange": {
        "runner_id": r.FREE_ID,
        **_OUTCOMES,
        "queue": r.FULL_NAME,
        "want": r.COUNT,
        "shared": r.FLAG,
        "now": r.TIME,
        "hold_for": r.DURATION,
        "max_bytes": r.SIZE,
    },
    "hold": {
        "runner_id": r.FREE_ID,
        "tokens": r.TOKENS,
        "token": r.TOKEN,
        "now": r.TIME,
        "hold_for": r.DURATION,
    },
    "leave": {"runner_id": r.FREE_ID},
    "release_lost": {
        "now": r.TIME,
        "hold_for": r.DURATION,
        "max_attempts": r.COUNT_FROM_1,
        "limit": r.COUNT,
    },
    "cancel_job": {"job_id": r.ID, "now": r.TIME},
    "subscribe": {"wake": r.CALLABLE, "queue": r.optional(r.FULL_NAME)},
}

UNKNOWN: Final[dict[str, str]] = {
    "get_job": "answers None",
    "find_job_by_idem_key": "answers None",
    "count_live_jobs": "answers 0",
    "put_targets": "JobNotFound: job_id: …",
    "get_targets": "answers None",
    "update_target.job_id": "TargetNotFound: idx: …",
    "update_target.idx": "TargetNotFound: idx: …",
    "set_job_status": "JobNotFound: job_id: …",
    "touch_job": "JobNotFound: job_id: …",
    "list_jobs.caller": "answers []",
    "list_jobs.after": "JobNotFound: after: …",
    "delete_job": "answers False",
    "exchange": "refused",
    "hold": "lost",
    "cancel_job": "answers None",
    "status": "answers None",
    "progress": "answers None",
    "results": "JobNotFound: job_id: …",
    "watch": "JobNotFound: job_id: …",
    "wait": "JobNotFound: job_id: …",
    "cancel": "answers False",
    "touch": "JobNotFound: job_id: …",
}
"""What an id, name or token means that nothing has, by function or by argument."""
