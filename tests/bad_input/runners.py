"""Every method of a runner, and all else that an application makes: each argument with its rule."""

from __future__ import annotations

from typing import Final

from tests.bad_input import rules as r
from tests.bad_input.rules import TAKEN, Rule, optional, same
from tests.bad_input.stores import Table

_WORDS: Final = "empty, a text, a str enum, too long"
_NUMBERS: Final = "0, a whole number, a fraction, negative, infinity, huge"

_NAMELESS: Final = "must have a name (str), like any batchmill.runner.Caller"
WHO: Final = Rule("someone", "anything with a name", _NAMELESS, {"a str enum": TAKEN})
WHOSE: Final = optional(
    Rule(
        "caller or name",
        "a caller, or a caller's name",
        "must be a caller with a name (str), or a name",
        r.CALLER.outcomes,
    )
)
_CONTENT: Final = "not JSON: holds a value of type …"
JSON: Final = Rule(
    "JSON",
    "anything that JSON has",
    _CONTENT,
    {
        **same(
            "None, a list, a mapping, True or False, 0, a whole number, a fraction, negative, "
            f"huge, {_WORDS}, NUL",
            TAKEN,
        ),
        **same("NaN, infinity", "not JSON: holds NaN or an infinity"),
        "lone surrogate": "not JSON: holds a lone surrogate; decode the text properly",
    },
)
_IN_OPTIONS: Final = "InvalidInput: targets[0].options: "
OPTION: Final = Rule(
    "option",
    "one of a target's options: anything that JSON has",
    f"{_IN_OPTIONS}{_CONTENT}",
    {
        kind: outcome if outcome == TAKEN else f"{_IN_OPTIONS}{outcome}"
        for kind, outcome in JSON.outcomes.items()
    },
)
LISTED: Final = Rule(
    "targets",
    "a list of Target or URLs, in order",
    "must be a list of targets…",
    {"a list": TAKEN},
)
ONE: Final = Rule(
    "target",
    "a Target, or a URL",
    "InvalidInput: targets[0]: must be a Target or a URL (str), not …",
    {
        **same(_WORDS, TAKEN),
        "NUL": f"InvalidInput: targets[0].url: {r.TEXT.of('NUL')}",
        "lone surrogate": f"InvalidInput: targets[0].url: {r.TEXT.of('lone surrogate')}",
    },
)
TIMEOUT: Final = Rule(
    "timeout",
    "seconds, int or float; less than 0 is 0; None and what no lock can wait are for ever",
    "must be seconds (int or float) or None, not …",
    same(f"None, {_NUMBERS}", TAKEN),
)
DURATION: Final = Rule(
    "duration",
    "a timedelta, more than 0 and at most 100 years",
    "must be a timedelta, not …",
    {
        "a timedelta": TAKEN,
        "a negative timedelta": "must be more than 0",
        "a huge timedelta": "must be at most 36525 days",
    },
)
EVER: Final = DURATION.but("kept for", "a timedelta, more than 0", {"a huge timedelta": TAKEN})
SIZE_FROM_1: Final = r.COUNT.but(
    "bytes from 1",
    "a whole number of bytes from 1",
    same("0, negative, huge", "must be from 1 to 9223372036854775807"),
)
CLASSES: Final = Rule(
    "classes", "a tuple of exception classes", "must be a tuple of exception classes"
)
OPTION_TEXT: Final = r.TEXT.but("option text", "a text", same("NUL, lone surrogate", TAKEN))


def _a(name: str, kind: str) -> Rule:
    return optional(Rule(name, kind, f"must be {kind} or None, not …"))


RUNNER: Final[Table] = {
    "Runner": {
        "store": Rule("store", "a JobStore", "must have the methods of a JobStore, …"),
        "fetch": r.CALLABLE,
        "config": _a("config", "a RunnerConfig"),
        "hooks": _a("hooks", "Hooks"),
        "resolve_caller": optional(r.CALLABLE),
        "queue": r.FULL_NAME,
        "runner_id": optional(r.TEXT),
        "clock": optional(r.CALLABLE),
        "logger": _a("logger", "a Logger"),
    },
    "submit": {
        "caller": WHO,
        "caller.name": r.NAME.but("name of a caller", "a text of at most 255 characters", {}),
        "targets": LISTED,
        "target": ONE,
        "target.option": OPTION,
        "caller_class": r.NAME,
        "within": r.WITHIN,
    },
    "status": {
        "job_id": r.ID,
        "caller": WHOSE,
        "start": r.COUNT,
        "limit": optional(r.COUNT),
        "with_results": r.FLAG,
    },
    "progress": {"job_id": r.ID, "caller": WHOSE},
    "results": {"job_id": r.ID, "caller": WHOSE},
    "watch": {"job_id": r.ID, "caller": WHOSE},
    "wait": {"job_id": r.ID, "timeout": TIMEOUT, "caller": WHOSE},
    "cancel": {"job_id": r.ID, "caller": WHOSE},
    "touch": {"job_id": r.ID, "caller": WHOSE},
    "drain": {"timeout": TIMEOUT},
    "close": {"timeout": TIMEOUT},
    "start": {},
    "reconcile": {},
}
OBJECTS: Final[Table] = {
    "RunnerConfig": {
        "ttl": EVER,
        **dict.fromkeys(("retry_wait", "retry_for", "hold_for", "poll_interval"), DURATION),
        **dict.fromkeys(
            ("targets_per_job", "jobs_per_caller", "jobs_total", "workers"), r.COUNT_FROM_1
        ),
        **dict.fromkeys(("worker_limit", "max_attempts"), r.COUNT_FROM_1),
        "max_bytes": SIZE_FROM_1,
        "max_result_bytes": optional(SIZE_FROM_1),
        "internal_errors": CLASSES,
    },
    "Hooks": dict.fromkeys(
        ("job", "target", "job_seconds", "depth", "inflight"), optional(r.CALLABLE)
    ),
    "Target": {
        "url": r.TEXT,
        "options": Rule(
            "options",
            "a mapping, Options or None",
            "must be a mapping, not …",
            same("None, a mapping", TAKEN),
        ),
    },
    "Options": {
        **dict.fromkeys(("mode", "question", "pages", "grep", "jq"), OPTION_TEXT),
        "context": optional(r.FLAG),
        "recover": r.FLAG,
    },
    "FetchContext.wait": {"seconds": TIMEOUT},
}
_BIND: Final = Rule(
    "bind", "an Engine or a Connection", "must be a SQLAlchemy Engine or Connection"
)
_SCHEMA: Final = optional(
    Rule("schema", "nothing, on SQLite", "this database has no schemas; leave it out")
)
_URL: Final = Rule(
    "url", "a database URL", "is not a database URL; write it like sqlite:///file.db"
)
_REVISION: Final = r.TEXT.but(
    "revision",
    "a revision, head or base",
    {
        **same("a text, a str enum, too long", "MigrationError: the migration could not be run: …"),
        "empty": "must not be empty; head is the newest, base is before all",
    },
)
DATABASE: Final[Table] = {
    "create_store_engine": {
        "url": _URL,
        "durability": Rule("durability", "'full' or 'normal'", "must be 'full' or 'normal'"),
    },
    "BatchRepository": {
        "engine": Rule("engine", "an Engine", "must be an Engine, not …"),
        "schema": _SCHEMA,
    },
    "bound_to": {
        "within": Rule(
            "connection", "a Connection or a Session", "must be a Connection or a Session, not …"
        )
    },
    **{
        name: {"engine_or_connection": _BIND, "schema": _SCHEMA}
        for name in ("migrate.upgrade", "migrate.verify", "migrate.current")
    },
    **{
        name: {"engine_or_connection": _BIND, "revision": _REVISION, "schema": _SCHEMA}
        for name in ("migrate.downgrade", "migrate.stamp")
    },
    "migrate.sql": {"url": _URL, "schema": _SCHEMA, "start": _REVISION, "end": _REVISION},
}

_RESULT: Final = f"{r.STORED}result: "
FETCH: Final[Table] = {
    "what a fetch returns": {
        "itself": Rule("a Result", "a Result", f"{r.STORED}fetch must return a Result, not …"),
        "content": Rule(
            "content",
            "anything that JSON has",
            f"{_RESULT}{_CONTENT}",
            {k: o if o == TAKEN else f"{_RESULT}{o}" for k, o in JSON.outcomes.items()},
        ),
        "meta": Rule(
            "meta",
            "a mapping",
            f"{_RESULT}meta must be a mapping, not …",
            {"a mapping": TAKEN},
        ),
    },
}
"""A fetch's faults are its target's: the target is stored as failed with this error."""
