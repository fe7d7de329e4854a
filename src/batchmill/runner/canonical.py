"""Canonical JSON: sorted keys, compact, UTF-8, no NaN; the same text on every machine."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from batchmill.errors import InvalidInput

_PLAIN = frozenset({str, int, float, bool, type(None)})


def canonical_json(value: Any) -> str:
    """The canonical JSON text of a value.

    Mappings with text keys, lists, tuples, text, numbers, booleans and None are JSON. Raises
    ``InvalidInput`` that says what isn't, and never quotes the value (cases.md 5 and 21). A NUL
    in a text is escaped by JSON itself; a lone surrogate has no UTF-8 and is refused.
    """
    if type(value) is dict and not value:
        return "{}"  # the options of most targets
    try:
        text = _ENCODER.encode(value)
        if not text.isascii():
            text.encode()
    except InvalidInput:
        raise
    except Exception as error:  # noqa: BLE001 - a mapping of the application's may raise anything
        raise InvalidInput(_reason(value, error)) from None
    if type(value) not in _PLAIN:
        _check_keys(value)
    return text


def _refuse(value: Any) -> Any:
    """What the encoder asks for a value that it doesn't know: mappings of any kind are fine."""
    if isinstance(value, Mapping):
        return dict(value)
    raise InvalidInput(f"not JSON: holds a value of type {type(value).__name__}")


_ENCODER = json.JSONEncoder(
    ensure_ascii=False,
    allow_nan=False,
    sort_keys=True,
    separators=(",", ":"),
    default=_refuse,
)


def _check_keys(value: Any) -> None:
    """The encoder turns numbers and None into text keys, which would not read back the same.

    Called on what could be encoded, so the walk ends.
    """
    for part in _parts(value):
        if isinstance(part, Mapping):
            for key in part:
                if not isinstance(key, str):
                    kind = type(key).__name__
                    raise InvalidInput(f"not JSON: a key is of type {kind}; keys must be text")


def _parts(value: Any) -> Iterator[Any]:
    """The value and all that it holds, without recursion; a value met again is left out."""
    open_parts, seen = [value], {id(value)}
    while open_parts:
        part = open_parts.pop()
        yield part
        if not isinstance(part, (Mapping, list, tuple)):
            continue
        for item in part.values() if isinstance(part, Mapping) else part:
            if type(item) in _PLAIN and not isinstance(item, float):
                continue
            if id(item) not in seen:
                seen.add(id(item))
                open_parts.append(item)


def _reason(value: Any, error: Exception) -> str:
    """Why the encoder gave up, in words that don't quote the value."""
    if isinstance(error, UnicodeEncodeError):
        return "not JSON: holds a lone surrogate; decode the text properly"
    if isinstance(error, RecursionError):
        return "not JSON: nested too deep"
    if isinstance(error, ValueError) and "ircular" in str(error):
        return "not JSON: holds itself (a circular reference)"
    try:
        return _reason_found_inside(value, error)
    except Exception as odd:  # noqa: BLE001 - as above, reading it is what fails
        return f"not JSON: reading it raised {type(odd).__name__}"


def _reason_found_inside(value: Any, error: Exception) -> str:
    for part in _parts(value):
        if isinstance(part, Mapping) and not all(isinstance(key, str) for key in part):
            return "not JSON: not all keys are text"
        if isinstance(part, float) and not math.isfinite(part):
            return "not JSON: holds NaN or an infinity"
    if isinstance(error, ValueError):
        return "not JSON: holds a number of too many digits"
    return f"not JSON: reading it raised {type(error).__name__}"
