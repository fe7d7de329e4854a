"""The tables, and what statements share."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Table,
    Text,
    bindparam,
    func,
    literal_column,
    select,
)

from batchmill.records import KEY_STATUSES, LIVE_STATUSES
from batchmill.store.capabilities import Capabilities
from batchmill.store.models import metadata

JOB: Final[Table] = metadata.tables["batch_job"]
TARGET: Final[Table] = metadata.tables["batch_target"]
TURN: Final[Table] = metadata.tables["batch_turn"]
RUNNER: Final[Table] = metadata.tables["batch_runner"]
TOTAL: Final[Table] = metadata.tables["batch_total"]


def word(value: str) -> ColumnElement[str]:
    """One of our own fixed words as a literal, so that the planner sees it."""
    return literal_column(f"'{value}'", Text)


def number(name: str) -> ColumnElement[Any]:
    """A parameter that is a 64-bit integer."""
    return bindparam(name, type_=BigInteger)


def live() -> ColumnElement[bool]:
    """The job counts against the caps."""
    return JOB.c.status.in_([word(status) for status in sorted(LIVE_STATUSES)])


def ended() -> ColumnElement[bool]:
    """The job is terminal."""
    return JOB.c.status.not_in([word(status) for status in sorted(LIVE_STATUSES)])


def answers_key() -> ColumnElement[bool]:
    """The job may answer an idempotency key."""
    return JOB.c.status.in_([word(status) for status in sorted(KEY_STATUSES)])


def among(can: Capabilities, column: Any, name: str) -> ColumnElement[bool]:
    """The column is one of a list, given as one parameter however long the list is.

    One parameter keeps the statement's text the same for any length, and clear of a database's
    limit on the number of parameters (cases.md 25). See :func:`batchmill.store.operations.listed`
    for the value.
    """
    if not can.json_each:
        raise NotImplementedError
    each = func.json_each(bindparam(name, type_=Text)).table_valued("value", name=f"{name}_list")
    chosen: ColumnElement[bool] = column.in_(select(each.c.value))
    return chosen
