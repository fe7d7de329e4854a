"""What each kind of argument answers to each kind of value: half of the documented table.

An outcome is ``TAKEN``, ``UNKNOWN`` (the function says what that is), or the text of an
``InvalidInput`` behind the argument's name, in which ``…`` stands for what differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

TAKEN: Final = "taken"
UNKNOWN: Final = "unknown"
STORED: Final = "stored as failed: "
"""How the outcome begins of a text that can't be stored with what a fetch brought."""


@dataclass(frozen=True)
class Rule:
    """A kind of argument: ``otherwise`` is the outcome of every kind not in ``outcomes``."""

    name: str
    meaning: str
    otherwise: str
    outcomes: Mapping[str, str] = field(default_factory=dict)

    def of(self, kind: str) -> str:
        """The outcome of a value of this kind."""
        return self.outcomes.get(kind, self.otherwise)

    def but(self, name: str, meaning: str, outcomes: Mapping[str, str]) -> Rule:
        """A rule that differs a little."""
        return replace(self, name=name, meaning=meaning, outcomes={**self.outcomes, **outcomes})


def optional(rule: Rule) -> Rule:
    """The same, or None."""
    return rule.but(f"{rule.name}, or None", f"{rule.meaning}; or None", {"None": TAKEN})


def same(kinds: str, outcome: str) -> dict[str, str]:
    return dict.fromkeys(kinds.split(", "), outcome)


NOT_EMPTY: Final = "must not be empty"
WHOLE: Final = "must be a whole number (int), not …"
SECONDS: Final = "must be unix seconds (int or float), not …"
FAR: Final = "must be unix seconds, finite and at most 1000000000000 either way"
ENDLESS: Final = "must be seconds, finite and at most 1000000000000 either way"
COUNTS: Final = "must be from 0 to 2147483647"
BYTES: Final = "must be from 0 to 9223372036854775807"
FROM_1: Final = "must be from 1 to 2147483647"
OTHER_JOB: Final = "names another job; leave it empty or give this job's"
IN_ORDER: Final = "must count up from 0 in the order given"
JOB_STATUSES: Final = "must be one of queued, running, done, partial, failed, cancelled"
TARGET_STATUSES: Final = "must be one of pending, running, done, failed"
KINDS_OF_OUTCOME: Final = "must be one of done, failed, later, put_back, fail_job"

TEXT: Final = Rule(
    "text",
    "any text without a NUL or a lone surrogate",
    "must be text (str), not …",
    {
        **same("empty, a text, a str enum, too long", TAKEN),
        "NUL": "must not contain a NUL character; remove it",
        "lone surrogate": "must not contain a lone surrogate; decode the text properly",
    },
)
NAME: Final = TEXT.but(
    "name",
    "a text of at most 255 characters",
    {"too long": "has 420 characters; at most 255 are stored"},
)
FULL_NAME: Final = NAME.but(
    "name, not empty", "a text of 1 to 255 characters", {"empty": NOT_EMPTY}
)
CALLER: Final = NAME.but("caller", "a caller's name", same("empty, a text, a str enum", UNKNOWN))
FREE_ID: Final = TEXT.but(
    "new id",
    "a text of 1 to 64 characters",
    {"empty": NOT_EMPTY, "too long": "has 420 characters; at most 64 are stored"},
)
ID: Final = FREE_ID.but("id", "the id of a job", same("a text, a str enum", UNKNOWN))
TIME: Final = Rule(
    "time",
    "unix seconds, int or float",
    SECONDS,
    {
        **same("0, a whole number, a fraction, negative", TAKEN),
        **same("NaN, infinity, huge", FAR),
    },
)
DURATION: Final = Rule(
    "seconds",
    "seconds, int or float, more than 0",
    "must be seconds (int or float), not …",
    {
        **same("a whole number, a fraction", TAKEN),
        **same("0, negative", "must be more than 0 seconds"),
        **same("NaN, infinity, huge", ENDLESS),
    },
)
TTL: Final = Rule(
    "ttl",
    "a timedelta of 0 or more",
    "must be a timedelta, not …",
    {
        **same("a timedelta, a huge timedelta", TAKEN),
        "a negative timedelta": "must not be negative",
    },
)
COUNT: Final = Rule(
    "count",
    "a whole number from 0",
    WHOLE,
    {**same("0, a whole number", TAKEN), **same("negative, huge", COUNTS)},
)
COUNT_FROM_1: Final = COUNT.but(
    "count from 1", "a whole number from 1", same("0, negative, huge", FROM_1)
)
INDEX: Final = COUNT.but(
    "index", "the index of a target, from 0", same("0, a whole number", UNKNOWN)
)
SIZE: Final = COUNT.but("bytes", "a whole number of bytes from 0", same("negative, huge", BYTES))
JOB_STATUS: Final = Rule("job status", "a JobStatus or its text", JOB_STATUSES)
TARGET_STATUS: Final = Rule("target status", "a TargetStatus or its text", TARGET_STATUSES)
OUTCOME_KIND: Final = Rule("kind", "one of the five kinds of an outcome", KINDS_OF_OUTCOME)
FLAG: Final = Rule(
    "flag", "True or False", "must be True or False, not …", {"True or False": TAKEN}
)
CALLABLE: Final = Rule("callable", "something to call", "must be callable, not …")
JOB: Final = Rule("job", "a BatchJob", "must be a BatchJob, not …")
LIMITS: Final = Rule("limits", "Limits", "must be Limits, not …")
ROWS: Final = Rule(
    "rows",
    "a list of BatchTarget",
    "must be a list of BatchTarget, not …",
    {"a list": "must be BatchTarget, not …"},
)
OUTCOMES: Final = Rule(
    "outcomes",
    "a list of Outcome",
    "must be a list of Outcome, not …",
    {"a list": "InvalidInput: outcome: must be an Outcome, not …"},
)
TOKENS: Final = Rule(
    "tokens", "a list of tokens", "must be a list of tokens, not …", {"a list": UNKNOWN}
)
TOKEN: Final = TEXT.but(
    "token", "the token of a claim", same("empty, a text, a str enum, too long", UNKNOWN)
)
BROUGHT: Final = Rule(
    "brought",
    "a text that a fetch brought, or None",
    f"{STORED}the outcome can't be stored: …: must be text (str), not …",
    {
        **same("None, empty, a text, a str enum, too long", TAKEN),
        "NUL": f"{STORED}the outcome can't be stored: …: {TEXT.of('NUL')}",
        "lone surrogate": f"{STORED}the outcome can't be stored: …: {TEXT.of('lone surrogate')}",
    },
)
WITHIN: Final = optional(Rule("transaction", "a Connection or a Session (SQL stores only)", "…"))
