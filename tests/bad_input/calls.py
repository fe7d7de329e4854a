"""Calls that work, and the same with one argument of another value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from batchmill.errors import BatchmillError, InvalidInput, MigrationError
from batchmill.records import BatchTarget, Outcome
from batchmill.runner import Target
from tests.bad_input.rules import TAKEN
from tests.bad_input.values import SECRET
from tests.bad_input.worlds import HOUR, NOW, WIDE, World, job

LATER: Final = NOW + 5


@dataclass(frozen=True)
class Person:
    """A caller."""

    name: str


_ONE_JOB: Final[dict[str, Any]] = {"job_id": "over", "caller": "ada"}
_RUNNER: Final[dict[str, dict[str, Any]]] = {
    "submit": {
        "caller": Person("bea"),
        "targets": [Target("u")],
        "caller_class": "restricted",
        "within": None,
    },
    "status": {**_ONE_JOB, "start": 0, "limit": 9, "with_results": True},
    "progress": _ONE_JOB,
    "results": _ONE_JOB,
    "watch": _ONE_JOB,
    "wait": {**_ONE_JOB, "timeout": 9},
    "cancel": {"job_id": "live", "caller": "ada"},
    "touch": _ONE_JOB,
    "drain": {"timeout": 9},
    "close": {"timeout": 9},
}


def good(world: World) -> dict[str, dict[str, Any]]:
    """Arguments of each method of a store that work."""
    token = world.claim.token
    return {
        "create_job": {"job": job("new")},
        "get_job": {"job_id": "hand", "touch_at": LATER},
        "find_job_by_idem_key": {"caller": "ada", "idem_key": "over", "now": NOW, "ttl": HOUR},
        "count_live_jobs": {"caller": "ada"},
        "put_targets": {"job_id": "hand", "targets": [BatchTarget("", 5, "u", status="done")]},
        "get_targets": {"job_id": "over", "start": 0, "limit": 9, "max_bytes": 9},
        "update_target": {"job_id": "hand", "idx": 1, "now": LATER, "status": "failed"},
        "set_job_status": {"job_id": "hand", "status": "failed", "now": LATER, "error": "e"},
        "touch_job": {"job_id": "hand", "now": LATER},
        "sweep": {"now": NOW + 7200, "ttl": HOUR, "limit": 5},
        "evict_oldest": {"max_bytes": 0, "limit": 5},
        "mark_in_flight_failed": {"reason": "r", "now": LATER},
        "list_jobs": {"caller": "ada", "status": "done", "after": "over", "limit": 9},
        "delete_job": {"job_id": "hand"},
        "submit_job": {
            "job": job("new", targets_total=1),
            "targets": [BatchTarget("", 0, "u")],
            "queue": "default",
            "home": None,
            "limits": WIDE,
            "now": LATER,
            "ttl": HOUR,
        },
        "exchange": {
            "runner_id": "r",
            "outcomes": [Outcome("live", 1, token, "done", '{"content":2}')],
            "queue": "default",
            "want": 1,
            "shared": True,
            "now": LATER,
            "hold_for": 60,
            "max_bytes": 10**9,
        },
        "hold": {"runner_id": "r", "tokens": [token], "now": LATER, "hold_for": 60},
        "leave": {"runner_id": "r"},
        "release_lost": {"now": NOW + 500, "hold_for": 60, "max_attempts": 3, "limit": 9},
        "cancel_job": {"job_id": "live", "now": LATER},
        "subscribe": {"wake": print, "queue": "default"},
        **_RUNNER,
    }


_FIELDS: Final[dict[str, tuple[str, bool]]] = {
    "job": ("job", False),
    "limits": ("limits", False),
    "target": ("targets", True),
    "outcome": ("outcomes", True),
    "token": ("tokens", True),
    "caller": ("caller", False),
}
"""Where a dotted name is a field of: the argument, and whether that is a list of one."""


def changed(arguments: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    """The arguments with one of them, or a field of one, as given."""
    head, _, field = name.partition(".")
    if head not in _FIELDS or (head in arguments and not field):
        return arguments | {name: value}
    argument, listed = _FIELDS[head]
    whole = arguments[argument][0] if listed else arguments[argument]
    new = _with_field(whole, field, value) if field else value
    return arguments | {argument: [new] if listed else new}


def _with_field(whole: Any, field: str, value: Any) -> Any:
    return Target("u", {"x": value}) if field == "option" else replace(whole, **{field: value})


def answer_of(call: Callable[[], Any]) -> tuple[str, Any]:
    """What a call answers: ``TAKEN`` and its value, or its error's class and text, and None."""
    try:
        answer = call()
        return TAKEN, list(answer) if isinstance(answer, Iterator) else answer
    except TimeoutError:  # of a drain that had no time
        return TAKEN, None
    except Exception as error:
        return _text_of(error), None


def _text_of(error: Exception) -> str:
    """Its class and text, with what would be wrong with any error."""
    text = f"{type(error).__name__}: {error}"
    if not isinstance(error, BatchmillError):
        return f"not of batchmill: {text}"
    if isinstance(error, InvalidInput) and not isinstance(error, ValueError):
        return f"no ValueError: {text}"
    quoted = SECRET in f"{error}{error.__cause__}{error.__context__}"
    # What Alembic says of a revision quotes it; a revision is no secret.
    return (
        f"the value is repeated: {text}"
        if quoted and not isinstance(error, MigrationError)
        else text
    )


def fits(answered: str, documented: str) -> bool:
    """Whether a text is the documented one, in which ``…`` stands for anything."""
    parts = [re.escape(part) for part in documented.split("…")]
    return re.fullmatch(".+".join(parts), answered, re.DOTALL) is not None


def documented(outcome: str, named: str) -> str:
    """The whole text of an error's outcome, for the argument of this name."""
    return outcome if re.match(r"[A-Z]\w+: ", outcome) else f"InvalidInput: {named}: {outcome}"
