"""PostgreSQL past psycopg's cursors: several statements in one round trip, nothing else.

psycopg's own pipeline sends, and looks for answers, statement by statement, and waits for BEGIN
apart from the rest: measured, that was half of what an exchange costs a process. Here all of them
leave in one piece, each prepared once a connection, and COMMIT may be the last of them.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Generator, MutableMapping, Sequence
from itertools import count
from typing import Any, Final, NamedTuple

from batchmill.errors import StoreBusy, StoreError

_WAIT_READ: Final = 1
_WAIT_BOTH: Final = 3
"""What psycopg's ``Connection.wait`` is told to wait for: its ``waiting.Wait``."""

KEPT: Final = "batchmill_wire"

MOST_PREPARED: Final = 200
"""Statements that stay prepared on a connection: more than ours are, in two schemas."""
_NAME: Final = f"batchmill_{secrets.token_hex(4)}_%d".encode()
_NUMBERS: Final = count(1)
"""Prepared statements are named apart: another wire, or process, may get the same session."""

_DIVISION_BY_ZERO: Final = "22012"
_UNKNOWN_STATEMENT: Final = ("0A000", "26000")
"""What a prepared statement meets that somebody dropped, or whose tables have been altered."""
_LEVELS: Final = {
    1: "READ UNCOMMITTED",
    2: "READ COMMITTED",
    3: "REPEATABLE READ",
    4: "SERIALIZABLE",
}
"""By the numbers of psycopg's ``IsolationLevel``."""


class Expected(NamedTuple):
    """How many rows a statement has to touch, and what is wrong where it touches others."""

    rows: int
    otherwise: str


class Order(NamedTuple):
    """A statement to send: its text, with its parameters as ``$1``, ``$2`` …, and these."""

    text: bytes
    values: Sequence[Any]
    expected: Expected | None = None


_PLACE: Final = re.compile(r"%(?:\((\w+)\)s|%)")


def numbered(text: str) -> tuple[list[str], bytes]:
    """A statement as psycopg's cursors take it, with ``$1`` … instead; the name for each."""
    names: dict[str, int] = {}

    def place(found: re.Match[str]) -> str:
        name = found[1]
        return "%" if name is None else f"${names.setdefault(name, len(names) + 1)}"

    sent = _PLACE.sub(place, text).encode()
    return list(names), sent


def fenced(text: bytes, parameters: int) -> bytes:
    """A writing statement that fails where it touches another number of rows than expected.

    So that what comes after it, COMMIT too, isn't done; that number is one more parameter.
    """
    return (
        b"WITH written AS (%b RETURNING 1) "
        b"SELECT count(*), 1 / (count(*) = $%d::bigint)::int FROM written" % (text, parameters + 1)
    )


def wire_of(info: MutableMapping[Any, Any], driver: Any) -> Wire | None:
    """The wire of a connection, kept in its pool's notes on it.

    None in the middle of a pipeline of the application's own.
    """
    if driver.pgconn.pipeline_status:
        return None
    wire = info.get(KEPT)
    if wire is None or wire.driver is not driver:
        wire = info[KEPT] = Wire(driver)
    return wire


class Wire:
    """One connection of psycopg's, which nobody else uses meanwhile."""

    def __init__(self, driver: Any) -> None:
        from psycopg import errors, pq
        from psycopg.adapt import Transformer

        self.driver = driver
        self._pq = driver.pgconn
        self._status = pq.ExecStatus
        self._errors = errors
        self._loader = Transformer(driver)
        self._uses: dict[bytes, int] = {}
        self._prepared: dict[bytes, bytes] = {}
        self._losses = 0

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return bool(self._pq.transaction_status)

    def run(
        self, orders: Sequence[Order], *, begin: bool = False, commit: bool = False, alone: bool
    ) -> list[Any]:
        """Send all of them, between BEGIN and COMMIT where asked; a result for each.

        ``alone``: the transaction is our own, so that statements may be prepared. Raises what the
        driver would, or ``StoreError`` where not as many rows as expected were touched: then
        nothing after that statement was done; or ``StoreBusy`` where prepared ones are no more.
        """
        sent = [
            *([Order(_begin(self.driver), ())] if begin else ()),
            *orders,
            *([Order(b"COMMIT", ())] if commit else ()),
        ]
        packed = [[_packed(value) for value in order.values] for order in sent]
        return self._exchanged(sent, packed, prepare=alone)[begin : begin + len(orders)]

    def rows(self, result: Any) -> list[Any]:
        """All rows of a result, as plain tuples."""
        self._loader.set_pgresult(result)
        rows: list[Any] = self._loader.load_rows(0, result.ntuples, tuple)
        self._loader.set_pgresult(None)  # an idle connection holds no rows
        return rows

    def touched(self, order: Order, result: Any) -> int:
        """How many rows a writing statement touched."""
        if order.expected is not None:
            return order.expected.rows
        return int(result.command_tuples or 0)

    def _exchanged(
        self, sent: Sequence[Order], packed: Sequence[Any], *, prepare: bool
    ) -> list[Any]:
        """One round trip; a connection on which it ends in the middle is closed."""
        results: list[Any] = []
        try:
            self._pq.enter_pipeline_mode()
            new = [
                self._send(order.text, values, prepare=prepare)
                for order, values in zip(sent, packed, strict=True)
            ]
            self._pq.pipeline_sync()
            self.driver.wait(self._collect(results))
            self._pq.exit_pipeline_mode()
        except BaseException:
            self._pq.finish()
            raise
        return self._sorted_out(results, sent, new)

    def _send(self, text: bytes, values: Any, *, prepare: bool) -> bytes | None:
        """Send one; the name under which it gets prepared by that.

        As often as psycopg would, and never where it is told not to: a pool between here and the
        server may know nothing of it. Nor where what was prepared got lost again and again.
        """
        name = self._prepared.get(text) if prepare else None
        if name is not None:
            self._pq.send_query_prepared(name, values)
            return None
        uses = self._uses[text] = self._uses.get(text, 0) + 1
        threshold = self.driver.prepare_threshold
        prepare &= self._losses < 2 and len(self._prepared) < MOST_PREPARED
        if threshold is None or uses <= threshold or not prepare:
            self._pq.send_query_params(text, values)
            return None
        name = _NAME % next(_NUMBERS)
        self._pq.send_prepare(name, text)
        self._pq.send_query_prepared(name, values)
        return name

    def _collect(self, results: list[Any]) -> Generator[int, int, None]:
        """Send what waits, and fetch what comes, up to the end of the pipeline."""
        wire, none_before = self._pq, False
        while wire.flush():
            if ((yield _WAIT_BOTH) or 0) & 1:  # None after an interrupt
                wire.consume_input()
        while True:
            while wire.is_busy():
                yield _WAIT_READ
                wire.consume_input()
            result = wire.get_result()
            if result is None and none_before:  # one follows each statement: the link is cut
                raise self._errors.OperationalError("the connection is lost")
            none_before = result is None
            if result is not None:
                if result.status == self._status.PIPELINE_SYNC:
                    return
                results.append(result)

    def _sorted_out(
        self, results: Sequence[Any], sent: Sequence[Order], new: Sequence[bytes | None]
    ) -> list[Any]:
        """The result of each order; raises for the first that failed."""
        answers, left = [], iter(results)
        for order, name in zip(sent, new, strict=True):
            if name is not None:
                self._check(next(left), order)
                self._prepared[order.text] = name
            answers.append(self._check(next(left), order))
        return answers

    def _check(self, result: Any, order: Order) -> Any:
        """The result, unless it is an error; those after the first one are not looked at."""
        if result.status != self._status.FATAL_ERROR:
            return result
        error = self._errors.error_from_result(result, encoding="utf-8")
        if order.expected is not None and error.sqlstate == _DIVISION_BY_ZERO:
            raise StoreError(order.expected.otherwise)
        if order.text in self._prepared and error.sqlstate in _UNKNOWN_STATEMENT:
            self._prepared.clear()
            self._uses.clear()
            self._losses += 1
            raise StoreBusy("what was prepared on a connection is gone; try again") from error
        raise error


def _begin(driver: Any) -> bytes:
    """BEGIN as psycopg would send it on this connection."""
    words = ["BEGIN"]
    if driver.isolation_level is not None:
        words.append(f"ISOLATION LEVEL {_LEVELS[driver.isolation_level]}")
    if driver.read_only is not None:
        words.append("READ ONLY" if driver.read_only else "READ WRITE")
    if driver.deferrable is not None:
        words.append("DEFERRABLE" if driver.deferrable else "NOT DEFERRABLE")
    return " ".join(words).encode()


def _packed(value: Any) -> bytes | None:
    """A parameter as the server reads it in text."""
    if value is None:
        return None
    text = _array(value) if isinstance(value, list) else str(value)
    if "\0" in text:
        from psycopg import DataError

        raise DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
    return text.encode()


def _array(values: Sequence[str | int | None]) -> str:
    return f"{{{','.join([_element(value) for value in values])}}}"


def _element(value: str | int | None) -> str:
    if isinstance(value, str):
        return '"%s"' % value.replace("\\", "\\\\").replace('"', '\\"')  # noqa: UP031 - quicker
    return "NULL" if value is None else str(value)
