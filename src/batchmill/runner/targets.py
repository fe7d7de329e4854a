"""What goes into a fetch and what comes out of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from batchmill.errors import InvalidInput
from batchmill.quick import quick
from batchmill.validation import check_flag, check_text

_scan: Final = json.JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True)
class Options:
    """The seed's options of a target, a helper: any JSON mapping serves as options.

    Fields that are left at their default are left out of the JSON (spec/seed-001, Interfaces).
    Raises ``InvalidInput``, which names the field, for a value of another type.
    """

    mode: str = ""
    question: str = ""
    pages: str = ""
    grep: str = ""
    jq: str = ""
    context: bool | None = None
    recover: bool = False

    def __post_init__(self) -> None:
        for name in ("mode", "question", "pages", "grep", "jq"):
            if not isinstance(getattr(self, name), str):
                kind = type(getattr(self, name)).__name__
                raise InvalidInput(f"{name}: must be text (str), not {kind}")
        if self.context is not None:
            check_flag("context", self.context)
        check_flag("recover", self.recover)

    def as_mapping(self) -> dict[str, Any]:
        """The fields that are set, as they go into the JSON."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        unset = {each.name for each in fields(self) if values[each.name] == each.default}
        if self.context is not None:
            unset.discard("context")
        return {name: value for name, value in values.items() if name not in unset}


@dataclass(frozen=True, slots=True, init=False)
class Target:
    """One thing to fetch: a URL, which is just text here, and options, a JSON mapping.

    ``options`` takes ``Options`` too, and always reads as a plain dict. Raises ``InvalidInput``
    for a URL or options of another kind; what in them isn't JSON, a submit says.
    """

    url: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __init__(self, url: str, options: Mapping[str, Any] | Options | None = None) -> None:
        object.__setattr__(self, "url", check_text("url", url))
        object.__setattr__(self, "options", _plain(options))


def _plain(options: object) -> dict[str, Any]:
    if options is None:
        return {}
    if isinstance(options, Options):
        return options.as_mapping()
    if isinstance(options, Mapping):
        return dict(options)
    raise InvalidInput(f"options: must be a mapping, not {type(options).__name__}")


@quick
@dataclass(frozen=True, slots=True)
class Result:
    """A finished target: any JSON ``content``, and a JSON mapping of whatever goes with it."""

    content: Any
    meta: Mapping[str, Any] = field(default_factory=dict)


def read_result(text: str | None) -> Result | None:
    """A stored result; one of another shape reads as ``Result(content=it)``, NULL as None."""
    if text is None:
        return None
    try:
        value = _read(text)
    except (ValueError, RecursionError):
        return Result(text, {})
    if type(value) is dict and "content" in value:
        if len(value) == 1:  # most of them
            return Result(value["content"], {})
        meta = value.get("meta")
        if len(value) == 2 and type(meta) is dict:
            return Result(value["content"], meta)
    return Result(value, {})


def read_options(text: str) -> dict[str, Any] | None:
    """Stored options, None where they aren't a JSON object."""
    if text == "{}":
        return {}
    try:
        value = _read(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _read(text: str) -> Any:
    """The value of a JSON text; ours have no white space around, which is what takes time."""
    if text[:1] in "{[":
        value, end = _scan(text)
        if end == len(text):
            return value
    return json.loads(text)
