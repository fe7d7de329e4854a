"""Sizes and durations as people write them, and as they like to read them."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import Final

import typer

_BYTE_UNITS: Final = {
    "": 1,
    "b": 1,
    "k": 10**3,
    "kb": 10**3,
    "m": 10**6,
    "mb": 10**6,
    "g": 10**9,
    "gb": 10**9,
    "t": 10**12,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_TIME_UNITS: Final = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_NUMBER: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)", re.ASCII)
_MOST: Final = 2**63 - 1


def parse_bytes(text: str) -> int:
    """``64MiB``, ``10MB``, ``1.5g`` or a plain number of bytes; raises ``BadParameter``."""
    found = _NUMBER.fullmatch(text.strip().lower())
    if found is None or found[2] not in _BYTE_UNITS:
        raise typer.BadParameter(f"{text!r} is not a size; write it like 64MiB, 10MB or 5000")
    value = int(found[1]) if found[1].isdigit() else float(found[1])
    size = int(value * _BYTE_UNITS[found[2]])
    if size > _MOST:
        raise typer.BadParameter(f"{text!r} is more than any database holds")
    return size


def parse_duration(text: str) -> timedelta:
    """``24h``, ``90s``, ``1h30m``, ``7d`` or plain seconds; raises ``BadParameter``."""
    compact = text.strip().lower().replace(" ", "")
    parts = _NUMBER.findall(compact)
    whole = "".join(number + unit for number, unit in parts) == compact
    if not parts or not whole or any(unit not in _TIME_UNITS for _, unit in parts):
        raise typer.BadParameter(f"{text!r} is not a duration; write it like 24h, 30m or 90s")
    seconds = sum(float(number) * _TIME_UNITS[unit] for number, unit in parts)
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        raise typer.BadParameter(f"{text!r} is longer than anyone waits") from None


def parse_wait(text: str) -> timedelta:
    """A duration of more than nothing; raises ``BadParameter``."""
    value = parse_duration(text)
    if value <= timedelta(0):
        raise typer.BadParameter(f"{text!r} must be more than 0")
    return value


def bytes_text(count: int) -> str:
    """A size in at most eight characters: ``812 B``, ``12.4 KiB``, ``1.0 GiB``."""
    value, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    if unit == "B":
        return f"{count} B"
    return f"{value:.1f} {unit}" if value < 100 else f"{value:.0f} {unit}"


def duration_text(seconds: float) -> str:
    """A duration in its largest unit: ``45 s``, ``12 min``, ``3 h``, ``8 d``."""
    whole = max(0, math.floor(seconds))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if whole >= size:
            return f"{whole // size} {unit}"
    return f"{whole} s"


def plural(count: int, word: str) -> str:
    """``1 job``, ``2 jobs``; the number with commas in it."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
