"""The tables, and what statements share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    GenerativeSelect,
    Select,
    Table,
    Text,
    and_,
    bindparam,
    case,
    column,
    func,
    literal_column,
    select,
    text,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from batchmill.records import KEY_STATUSES, LIVE_STATUSES
from batchmill.store.capabilities import Capabilities
from batchmill.store.models import TURN_NUMBER, metadata

_Query = TypeVar("_Query", bound=GenerativeSelect)

JOB: Final[Table] = metadata.tables["batch_job"]
TARGET: Final[Table] = metadata.tables["batch_target"]
TURN: Final[Table] = metadata.tables["batch_turn"]
RUNNER: Final[Table] = metadata.tables["batch_runner"]
TOTAL: Final[Table] = metadata.tables["batch_total"]

GIVEN: Final = "given_rows"
"""The parameter that holds the sets of values to write, where they go in as one document."""

_JSON_TYPES: Final[Mapping[Any, str]] = {
    Text: "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
    BigInteger: "BIGINT",
}

CHANNEL_PREFIX: Final = "batchmill_"
"""Before the number that PostgreSQL knows ``batch_turn`` by: each schema has a channel of its own.
"""


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
    limit on the number of parameters (cases.md 25). See :meth:`batchmill.store.tx.Tx.listed` for
    the value.
    """
    chosen: ColumnElement[bool]
    if can.lists == "json":
        each = func.json_each(bindparam(name, type_=Text)).table_valued(
            "value", name=f"{name}_list"
        )
        chosen = column.in_(select(each.c.value))
    elif can.lists == "array":
        # Not ``==``, whose negation SQLAlchemy 2.0 writes as ``!= ANY``: other than one of them.
        each_of = func.any(bindparam(name, type_=ARRAY(column.type)))
        chosen = column.op("=", is_comparison=True)(each_of)
    else:  # the driver writes a tuple out itself, in parentheses
        chosen = column.op("IN", is_comparison=True)(bindparam(name, type_=Text))
    return chosen


class _ArrayOf(FunctionElement[Any]):
    """Values as an array, as PostgreSQL writes it; its dialect needn't be loaded for it."""

    inherit_cache = True


@compiles(_ArrayOf)
def _write_array(element: _ArrayOf, compiler: Any, **kw: Any) -> str:
    return f"ARRAY[{compiler.process(element.clauses, **kw)}]"


def looked_up(can: Capabilities, column: Any, value: Any) -> ColumnElement[bool]:
    """The column of a table that grows equals what another row says: found by an index, each.

    Where a planner may join by a hash instead, it is kept from it: it would read all kept rows
    for a few, by the statistics of a time when there were few, or many in flight.
    """
    if can.lists != "array":
        return column == value  # type: ignore[no-any-return]
    equal: ColumnElement[bool] = column.op("=", is_comparison=True)(func.any(_ArrayOf(value)))
    return equal


def named_by(can: Capabilities, many: bool, column: Any, value: Any) -> ColumnElement[bool]:
    """The column equals a value that is given; see :func:`given`.

    The rows are to be found one by one, in the order in which they are given, so that two
    transactions lock them in the same one. A planner that knows a small table would walk it for
    each, and keep that plan when it has grown: it is led to expect one row that is given.
    """
    if not many or can.lists != "array":
        return column == value  # type: ignore[no-any-return]
    return and_(looked_up(can, column, value), func.coalesce(value, word("")) == value)


def locked(can: Capabilities, query: _Query, *tables: Table, skip: bool = False) -> _Query:
    """The query, locking the rows that it finds in these tables, where the database locks rows.

    What it waited for is read anew, but on PostgreSQL only in the tables that are named: name each
    one whose columns decide something. ``skip``: rows that somebody else has locked are left out.
    """
    if not can.row_locks:
        return query
    return query.with_for_update(of=tables if can.locks_of else None, skip_locked=skip)


class _NextInSchema(ColumnElement[int]):
    """The next number of the sequence in the schema that a statement is compiled for.

    SQLAlchemy puts the schema's name into a text literal after it has escaped the literal.
    """

    inherit_cache = True
    type = BigInteger()


@compiles(_NextInSchema)
def _write_next(_: _NextInSchema, compiler: Any, **__: Any) -> str:
    schema = (compiler.schema_translate_map or {}).get(None)
    name = str(compiler.preparer.quote(TURN_NUMBER.name))
    if schema is not None:
        name = f"{compiler.preparer.quote_schema(schema)}.{name}"
    return "nextval('{}')".format(name.replace("'", "''"))


def next_number(can: Capabilities) -> Any:
    """A number of the sequence, higher than any before."""
    return _NextInSchema() if can.schemas else TURN_NUMBER.next_value()


def given(can: Capabilities, many: bool, **types: Any) -> Mapping[str, ColumnElement[Any]]:
    """The values to write, by name: parameters, or, of ``many`` sets, the columns of a table.

    That table goes in as an array for each column, or as one JSON document of the rows. One
    statement then writes them all: measured on MariaDB, 32 updates take a tenth of the time.
    """
    if not many:
        return {name: bindparam(name, type_=kind) for name, kind in types.items()}
    columns = [column(name, kind) for name, kind in types.items()]
    if can.lists == "array":
        arrays = [bindparam(name, type_=ARRAY(kind)) for name, kind in types.items()]
        return dict(func.unnest(*arrays).table_valued(*columns).render_derived(name="given").c)
    paths = [f"{name} {_JSON_TYPES[kind]} PATH '$.{name}'" for name, kind in types.items()]
    rows = func.json_table(
        bindparam(GIVEN, type_=Text), text(f"'$[*]' COLUMNS ({', '.join(paths)})")
    )
    return dict(rows.table_valued(*columns, name="given").c)


def next_pending(target: Any, job_id: Any, place: Any) -> Select[tuple[int]]:
    """The lowest index of a job's pending targets at a place.

    Not the least of all: PostgreSQL may read every target that is left to find it.
    """
    return (
        select(target.c.idx)
        .where(target.c.job_id == job_id, place, target.c.status == word("pending"))
        .order_by(target.c.idx)
        .limit(1)
    )


def lost_from() -> Any:
    """When a runner counts as lost: its own hold_for after it was seen, or ours if it is longer."""
    return RUNNER.c.seen_at + case(
        (RUNNER.c.hold_for > number("hold_for"), RUNNER.c.hold_for), else_=number("hold_for")
    )
