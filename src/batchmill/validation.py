"""Checks of what comes in, the same for every store and for the runner.

A database may refuse a NUL, cut a long name or take NaN for NULL; checking here gives the same
clear error on each, before anything is written. Every function returns the value to use.
"""

from __future__ import annotations

import math
import threading
from datetime import timedelta
from typing import Any, Final, TypeVar

from batchmill.errors import InvalidInput
from batchmill.records import JobStatus, TargetStatus

ID_LENGTH: Final = 64
NAME_LENGTH: Final = 255
MAX_TIME: Final = 10**12
"""Seconds either side of 1970: 30,000 years, and in milliseconds still a 64-bit integer."""
AT_ONCE: Final = -MAX_TIME * 1000
"""Unix milliseconds that every clock has reached: the ``ready_at`` of a turn that needn't wait."""
MAX_COUNT: Final = 2**31 - 1
MAX_BYTES: Final = 2**63 - 1

_Status = TypeVar("_Status", JobStatus, TargetStatus)


def check_text(field: str, value: Any) -> str:
    """A text that every database holds byte for byte: no NUL, no lone surrogate.

    A subclass of str, an enum's member say, comes back as its plain text.
    """
    if is_plain(value):
        return str(value)
    if not isinstance(value, str):
        raise InvalidInput(f"{field}: must be text (str), not {_kind(value)}")
    if "\x00" in value:
        raise InvalidInput(f"{field}: must not contain a NUL character; remove it")
    if not value.isascii() and _has_lone_surrogate(value):
        raise InvalidInput(f"{field}: must not contain a lone surrogate; decode the text properly")
    return value if type(value) is str else str.__str__(value)


def is_plain(value: Any) -> bool:
    """Most texts: nothing in it that any database could refuse."""
    return type(value) is str and value.isascii() and "\x00" not in value


def _has_lone_surrogate(value: str) -> bool:
    """Whether the text has no UTF-8; the error of that, which holds the text, goes no further."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return True
    return False


def check_optional_text(field: str, value: Any) -> str | None:
    """Like :func:`check_text`, or None."""
    return None if value is None else check_text(field, value)


def check_id(field: str, value: Any) -> str:
    """An id: 1 to 64 characters."""
    return _sized(field, check_text(field, value), ID_LENGTH, least=1)


def check_name(field: str, value: Any, *, least: int = 0) -> str:
    """A caller, class, key or queue: at most 255 characters."""
    return _sized(field, check_text(field, value), NAME_LENGTH, least=least)


def _sized(field: str, value: str, most: int, *, least: int) -> str:
    if len(value) < least:
        raise InvalidInput(f"{field}: must not be empty")
    if len(value) > most:
        raise InvalidInput(f"{field}: has {len(value)} characters; at most {most} are stored")
    return value


def check_time(field: str, value: Any) -> float:
    """Unix seconds, int or float, as they are; see :func:`check_seconds` for the floored kind."""
    return _check_number(field, value, "unix seconds")


def _check_number(field: str, value: Any, unit: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidInput(f"{field}: must be {unit} (int or float), not {_kind(value)}")
    if not -MAX_TIME <= value <= MAX_TIME:  # also catches NaN and the infinities
        raise InvalidInput(f"{field}: must be {unit}, finite and at most {MAX_TIME} either way")
    return value


def check_seconds(field: str, value: Any) -> int:
    """Unix seconds, floored, as they are compared and stored."""
    return math.floor(check_time(field, value))


def to_ms(seconds: float) -> int:
    """Unix milliseconds of unix seconds, floored."""
    return math.floor(seconds * 1000)


def check_ttl(field: str, value: Any) -> int:
    """A ``timedelta`` in whole seconds, a fraction rounded up; 0 is valid, less is not."""
    if not isinstance(value, timedelta):
        raise InvalidInput(f"{field}: must be a timedelta, not {_kind(value)}")
    if value < timedelta(0):
        raise InvalidInput(f"{field}: must not be negative")
    return value.days * 86_400 + value.seconds + (value.microseconds > 0)


def check_duration(field: str, value: Any) -> float:
    """Seconds, int or float, more than 0 and finite."""
    seconds = _check_number(field, value, "seconds")
    if seconds <= 0:
        raise InvalidInput(f"{field}: must be more than 0 seconds")
    return seconds


def check_timeout(field: str, value: Any) -> float | None:
    """Seconds to wait, None for ever; less than 0 is 0, more than a lock can wait is for ever."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
        raise InvalidInput(f"{field}: must be seconds (int or float) or None, not {_kind(value)}")
    return None if value >= threading.TIMEOUT_MAX else max(0.0, value)


def check_count(field: str, value: Any, *, least: int = 0, most: int = MAX_COUNT) -> int:
    """A whole number between ``least`` and ``most``, both included."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(f"{field}: must be a whole number (int), not {_kind(value)}")
    if not least <= value <= most:
        raise InvalidInput(f"{field}: must be from {least} to {most}")
    return int(value)


def check_flag(field: str, value: Any) -> bool:
    """True or False, and nothing that only counts as one of them."""
    if not isinstance(value, bool):
        raise InvalidInput(f"{field}: must be True or False, not {_kind(value)}")
    return value


def check_callable(field: str, value: Any) -> None:
    """Something that can be called."""
    if not callable(value):
        raise InvalidInput(f"{field}: must be callable, not {_kind(value)}")


def check_limit(field: str, value: Any) -> int | None:
    """How many at the most: a whole number from 0, or None for no limit."""
    return None if value is None else check_count(field, value)


def check_max_bytes(field: str, value: Any) -> int:
    """A byte budget: a whole number from 0."""
    return check_count(field, value, most=MAX_BYTES)


def check_job_status(field: str, value: Any) -> JobStatus:
    """One of the six job statuses, as its enum or its text."""
    return _member(field, value, JobStatus)


def check_target_status(field: str, value: Any) -> TargetStatus:
    """One of the four target statuses, as its enum or its text."""
    return _member(field, value, TargetStatus)


def _member(field: str, value: Any, kind: type[_Status]) -> _Status:
    if type(value) is kind:
        return value
    if not isinstance(value, str) or value not in tuple(kind):
        raise InvalidInput(f"{field}: must be one of {', '.join(kind)}")
    return kind(value)


def _kind(value: Any) -> str:
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return type(value).__name__
