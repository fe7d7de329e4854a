"""What a connection to a server gets: every text can be sent, a cut is noticed at both ends.

Without it a cut link is noticed after a quarter of an hour here, by TCP's own retries, and after
two hours at the server, where a transaction that nobody will end holds its locks meanwhile.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, Final

from sqlalchemy import Engine, event
from sqlalchemy.engine import URL

CONNECT_WITHIN: Final = 5
"""Seconds that a connect may take, for each address that the host's name has."""
SILENT_FOR: Final = 10
"""Seconds that the other end's TCP may leave us without an answer before the connection is lost.

This is no limit on how long a statement takes: a server that works on one still answers TCP.
"""
IDLE_FOR: Final = 30
"""Seconds after which a server ends a transaction that is open and that nobody works on."""

_PROBE_AFTER: Final = 4
_PROBE_EVERY: Final = 2
_PROBES: Final = 3

_LIBPQ: Final[dict[str, int]] = {
    "connect_timeout": CONNECT_WITHIN,
    "keepalives": 1,
    "keepalives_idle": _PROBE_AFTER,
    "keepalives_interval": _PROBE_EVERY,
    "keepalives_count": _PROBES,
    "tcp_user_timeout": SILENT_FOR * 1000,
}
_OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "psycopg": {**_LIBPQ, "client_encoding": "utf8"},
    "pymysql": {"connect_timeout": CONNECT_WITHIN, "charset": "utf8mb4"},
}
_SOCKET: Final[dict[str, int]] = {
    "TCP_KEEPIDLE": _PROBE_AFTER,
    "TCP_KEEPINTVL": _PROBE_EVERY,
    "TCP_KEEPCNT": _PROBES,
    "TCP_USER_TIMEOUT": SILENT_FOR * 1000,
}
# Only what neither the server's administrator nor the application's options have set.
_SET_POSTGRESQL: Final = f"""
    SELECT set_config(name, wanted, false)
    FROM pg_settings JOIN (VALUES
        ('idle_in_transaction_session_timeout', '{IDLE_FOR * 1000}'),
        ('tcp_keepalives_idle', '{_PROBE_AFTER}'),
        ('tcp_keepalives_interval', '{_PROBE_EVERY}'),
        ('tcp_keepalives_count', '{_PROBES}'),
        ('tcp_user_timeout', '{SILENT_FOR * 1000}')
    ) AS ours (setting_name, wanted) ON name = setting_name
    WHERE source = 'default'
"""
_SET_MARIADB: Final = (
    "SET SESSION idle_transaction_timeout = "
    f"IF(@@idle_transaction_timeout = 0, {IDLE_FOR}, @@idle_transaction_timeout)"
)


def link_options(address: URL) -> dict[str, Any]:
    """Arguments for the driver's connect, without those that the URL gives itself."""
    options = _OPTIONS.get(address.drivername.rpartition("+")[2], {})
    return {name: value for name, value in options.items() if name not in address.query}


def watch_links(engine: Engine) -> None:
    """Set up every connection of an engine's; those of other drivers are left as they are."""
    set_up = _SET_UP.get(engine.driver)
    if set_up is not None:
        event.listen(engine, "connect", _or_closed(set_up))


def _or_closed(set_up: Callable[[Any], None]) -> Callable[[Any, Any], None]:
    def connected(connection: Any, _record: Any) -> None:
        try:
            set_up(connection)
        except BaseException:
            connection.close()
            raise

    return connected


def _set_up_psycopg(connection: Any) -> None:
    before, connection.autocommit = connection.autocommit, True
    connection.execute(_SET_POSTGRESQL)
    connection.autocommit = before


def _set_up_pymysql(connection: Any) -> None:
    """PyMySQL's own ``read_timeout`` would end a statement, a migration's say, that takes long."""
    link = getattr(connection, "_sock", None)
    if isinstance(link, socket.socket) and link.family in (socket.AF_INET, socket.AF_INET6):
        for name, value in _SOCKET.items():
            option = getattr(socket, name, None)  # not every system has each
            if option is not None:
                link.setsockopt(socket.IPPROTO_TCP, option, value)
    with connection.cursor() as cursor:
        cursor.execute(_SET_MARIADB)


_SET_UP: Final = {"psycopg": _set_up_psycopg, "pymysql": _set_up_pymysql}

__all__ = ["CONNECT_WITHIN", "IDLE_FOR", "SILENT_FOR", "link_options", "watch_links"]
