from __future__ import annotations

from datetime import timedelta

import pytest
import typer

from batchmill.cli.values import (
    bytes_text,
    duration_text,
    parse_bytes,
    parse_duration,
    parse_wait,
    plural,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("5000", 5000),
        ("64MiB", 64 * 2**20),
        ("10MB", 10**7),
        ("1.5 GiB", 3 * 2**29),
        ("2k", 2000),
        ("7 b", 7),
    ],
)
def test_sizes_are_read_as_people_write_them(text, size):
    """A size has decimal or binary units, any case, or none for bytes."""
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "-1", "MiB", "1 furlong", "nan", "1e9", "99999999999TiB"])
def test_what_is_no_size_is_refused(text):
    """A negative, unknown or absurd size is a usage error."""
    with pytest.raises(typer.BadParameter):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("24h", 86400), ("30m", 1800), ("90s", 90), ("1h30m", 5400), ("7d", 604800), ("45", 45)],
)
def test_durations_are_read_as_people_write_them(text, seconds):
    """A duration has units, which may be put together, or none for seconds."""
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "h", "-5s", "24x", "5 s later", "9" * 30 + "d"])
def test_what_is_no_duration_is_refused(text):
    """A negative, unknown or absurd duration is a usage error."""
    with pytest.raises(typer.BadParameter):
        parse_duration(text)


def test_a_wait_of_nothing_is_refused():
    """Where a pause is needed, 0 is a usage error."""
    with pytest.raises(typer.BadParameter):
        parse_wait("0s")


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (150 * 2**20, "150 MiB"), (2**30, "1.0 GiB")],
)
def test_sizes_are_told_briefly(count, text):
    """A size is told in the unit that keeps it short."""
    assert bytes_text(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0 s"), (59.9, "59 s"), (60, "1 min"), (7200, "2 h"), (172800, "2 d")],
)
def test_durations_are_told_in_their_largest_unit(seconds, text):
    """A duration is told in whole units, rounded down, never negative."""
    assert duration_text(seconds) == text


def test_a_count_agrees_with_its_word():
    """One job, two jobs, with commas in large numbers."""
    assert [plural(n, "job") for n in (0, 1, 1200)] == ["0 jobs", "1 job", "1,200 jobs"]
