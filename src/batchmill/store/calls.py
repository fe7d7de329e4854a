"""Statements to run, by the functions that build them, and what they are compiled to, once each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Engine, Executable

from batchmill.store.capabilities import Capabilities, capabilities_of
from batchmill.store.schemas import check_schema
from batchmill.store.statements.common import GIVEN
from batchmill.store.wire import Expected, Order, fenced, numbered

Row = tuple[Any, ...]
Params = Mapping[str, Any]
Build = Callable[..., Executable]
"""A function of :mod:`batchmill.store.statements`: from capabilities to a construct."""


class Call(NamedTuple):
    """One statement to run: its builder, what picks the variant, and its parameters.

    Several sets of parameters run it once for each. ``expected`` is for one that writes.
    """

    build: Build
    variant: tuple[Any, ...]
    params: Params | Sequence[Params]
    expected: Expected | None = None


def call(build: Build, *variant: Any, **params: Any) -> Call:
    """A statement to run together with others."""
    return Call(build, variant, params)


class Compiler:
    """Compiles each statement once for one dialect, and for one schema (None: the default one)."""

    def __init__(self, engine: Engine, schema: str | None = None) -> None:
        self.dialect = engine.dialect
        self.can: Capabilities = capabilities_of(engine.dialect)
        self.schema = check_schema(schema, self.can)
        self._known: dict[tuple[Any, ...], Compiled] = {}

    def compiled(self, build: Build, variant: tuple[Any, ...]) -> Compiled:
        """The statement that ``build(capabilities, *variant)`` returns, ready to run."""
        key = (build, *variant)
        found = self._known.get(key)
        if found is None:
            statement = build(self.can, *variant)
            found = self._known[key] = Compiled(statement, self.dialect, self.schema)
        return found


class Compiled:
    """A statement's text and how its parameters are laid out for the driver."""

    __slots__ = ("_fenced", "_fixed", "_names", "_order", "_sent", "text")

    def __init__(self, statement: Executable, dialect: Any, schema: str | None) -> None:
        moved = {"schema_translate_map": {None: schema}, "render_schema_translate": True}
        compiled: Any = statement.compile(  # type: ignore[attr-defined]
            dialect=dialect, **({} if schema is None else moved)
        )
        self.text = str(compiled)
        self._names: tuple[str, ...] | None = (
            tuple(compiled.positiontup or ()) if compiled.positional else None
        )
        self._fixed: dict[str, Any] = {
            name: value for name, value in compiled.params.items() if value is not None
        }
        self._order: Sequence[str] = ()
        self._sent: bytes | None = None
        self._fenced = b""

    def order(self, params: Params | Sequence[Params], expected: Expected | None) -> Order:
        """The statement and its parameters as a :class:`~batchmill.store.wire.Wire` sends them."""
        if self._sent is None:
            self._order, sent = numbered(self.text)
            self._fenced = fenced(sent, len(self._order))
            self._sent = sent  # last: other threads look at it
        if isinstance(params, Sequence):
            (params,) = params
        given = self._one(params)
        values = [given[name] for name in self._order]
        if expected is None:
            return Order(self._sent, values)
        return Order(self._fenced, [*values, expected.rows], expected)

    def layout(self, params: Params | Sequence[Params]) -> Any:
        """The parameters as the driver takes them: by position, or by name; a list for many."""
        if isinstance(params, Sequence):
            if len(params) > 1:
                return [self._one(each) for each in params]
            (params,) = params
        return self._one(params)

    def _one(self, params: Params) -> Any:
        if self._names is None:
            return {**self._fixed, **params}
        fixed = self._fixed
        return tuple([params[n] if n in params else fixed[n] for n in self._names])


def documents(rows: Sequence[Params], most: int) -> Iterator[tuple[tuple[bool], Params, int]]:
    """Sets of parameters as JSON documents of so many characters; a larger set by itself.

    Each with the variant that takes it, and how many sets it holds.
    """
    part: list[str] = []
    size = 0
    for row in rows:
        document = json.dumps(row, ensure_ascii=False)
        if len(document) > most:
            yield (False,), row, 1
            continue
        if size + len(document) > most:
            yield _document(part)
            part, size = [], 0
        part.append(document)
        size += len(document)
    if part:
        yield _document(part)


def _document(part: Sequence[str]) -> tuple[tuple[bool], Params, int]:
    return (True,), {GIVEN: f"[{','.join(part)}]"}, len(part)
