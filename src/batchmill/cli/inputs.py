"""The list of targets that ``batchmill run`` is given: lines, or JSON Lines, or a mix."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Final

from batchmill.cli.errors import UsageError
from batchmill.errors import InvalidInput
from batchmill.runner import Target
from batchmill.validation import check_text

STDIN: Final = "-"
_KEYS: Final = {"url", "options"}


def read_targets(source: str) -> list[Target]:
    """The targets of a file, or of stdin for ``-``, in order; of any length.

    A line is a URL, or a JSON object ``{"url": …, "options": {…}}``. Blank lines and lines that
    begin with ``#`` are left out. Raises ``UsageError`` that names the line.
    """
    with _opened(source) as stream:
        targets = list(parse_lines(stream))
    if not targets:
        raise UsageError(f"no targets in {_called(source)}: write one URL a line")
    return targets


def parse_lines(lines: Iterable[bytes]) -> Iterator[Target]:
    """The targets of UTF-8 lines; raises ``UsageError`` that names the line."""
    for number, raw in enumerate(lines, start=1):
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            if line and not line.startswith("#"):
                yield _target(line)
        except UnicodeDecodeError:
            raise UsageError(f"line {number}: is not UTF-8 text") from None
        except InvalidInput as error:
            raise UsageError(f"line {number}: {error}") from None


def _target(line: str) -> Target:
    if not line.startswith("{"):
        return Target(check_text("url", line))
    value = _json_object(line)
    unknown = sorted(value.keys() - _KEYS)
    if unknown:
        raise InvalidInput(f"{unknown[0]!r} is not known; give url and options")
    url, options = value.get("url"), value.get("options", {})
    if not isinstance(url, str) or not url:
        raise InvalidInput('url: must be a text, as in {"url": "https://…"}')
    if not isinstance(options, dict):
        raise InvalidInput('options: must be an object, as in {"options": {"mode": "text"}}')
    _check_options(options)
    return Target(check_text("url", url), options)


def _check_options(options: dict[str, Any]) -> None:
    try:
        text = json.dumps(options, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise InvalidInput("options: hold a number too large to be kept") from None
    check_text("options", text)


def _json_object(line: str) -> dict[str, Any]:
    try:
        value = json.loads(line, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"is not JSON: {error.msg} at character {error.colno}") from None
    except (RecursionError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput("is JSON that can't be read: too deep, or a number too long") from None
    return dict(value)


def _refuse_constant(name: str) -> Any:
    raise InvalidInput(f"{name} is not JSON")


@contextmanager
def _opened(source: str) -> Iterator[BinaryIO]:
    if source == STDIN:
        yield sys.stdin.buffer
        return
    try:
        with open(source, "rb") as stream:  # noqa: PTH123 - the name is the user's, as it is
            yield stream
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UsageError(f"can't read {source}: {reason[:1].lower()}{reason[1:]}") from None


def _called(source: str) -> str:
    return "the input" if source == STDIN else source
