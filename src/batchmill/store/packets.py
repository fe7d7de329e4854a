"""The largest statement that a server takes, looked at before it is sent.

MariaDB drops the connection in the middle of one that is larger than its ``max_allowed_packet``:
to the driver that is a lost connection, and what looks like one is tried again for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import Connection

from batchmill.store.failures import ValueTooLarge

Params = Mapping[str, Any]

_KEY: Final = "batchmill_packet_limit"
_ALWAYS_FITS: Final = 16 * 1024
"""Bytes of the buffer that the server begins with (``net_buffer_length``)."""
_FIELDS: Final = frozenset({"url", "options", "result", "error", "hint"})


class Packets:
    """What may be sent on one connection, in one transaction."""

    __slots__ = ("_connection", "_sql")

    def __init__(self, connection: Connection, sql: str) -> None:
        self._connection = connection
        self._sql = sql

    def check(self, text: str, layout: Params) -> None:
        """Raise ``ValueTooLarge`` for a statement that the server wouldn't take whole."""
        most = _most_bytes(text, layout)
        if most > _ALWAYS_FITS and most >= self._limit():
            self._check_exactly(text, layout)

    def share(self, wanted: int) -> int:
        """How many characters may go into one of several parameters, ``wanted`` at the most.

        One character is four bytes at the most, when it is escaped as well.
        """
        return min(wanted, self._limit() // 8)

    def _limit(self) -> int:
        """The session's limit; asked for once a connection, and kept with it."""
        info = self._connection.info
        if _KEY not in info:
            info[_KEY] = int(self._connection.exec_driver_sql(self._sql).scalar_one())
        return int(info[_KEY])

    def _check_exactly(self, text: str, layout: Params) -> None:
        cursor: Any = self._connection.connection.cursor()
        try:
            size = len(cursor.mogrify(text, layout).encode()) + 1  # and the byte of the command
        finally:
            cursor.close()
        limit = self._limit()
        if size >= limit:
            raise ValueTooLarge(
                f"{_largest(layout)}: is larger than the database takes, in a statement of "
                f"{size} bytes where max_allowed_packet is {limit}; make it smaller, or raise that"
            )


def _most_bytes(text: str, layout: Params) -> int:
    """What the statement may have at the most: a character is 4 bytes, or 2 when it is escaped."""
    return len(text) + sum(map(_most_bytes_of, layout.values()))


def _most_bytes_of(value: Any) -> int:
    if isinstance(value, str):
        return 4 * len(value) + 2
    if isinstance(value, tuple):
        return sum(map(_most_bytes_of, value)) + len(value) + 2
    return 32


def _largest(layout: Params) -> str:
    """The field that it is about, where the statement has one for it."""
    name = max(layout, key=lambda each: _most_bytes_of(layout[each]))
    return name if name in _FIELDS else "a value"
