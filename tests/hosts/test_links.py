"""What connections of create_store_engine get, so that a cut is noticed at both ends."""

from __future__ import annotations

import contextlib
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import make_url
from sqlalchemy.exc import DBAPIError

from batchmill.errors import StoreUnavailable
from batchmill.store import BatchRepository, create_store_engine
from batchmill.store.links import IDLE_FOR, SILENT_FOR
from tests.support.servers import LOOPBACK, free_port

_IDLE = {
    "postgresql": "SELECT setting::int / 1000 FROM pg_settings"
    " WHERE name = 'idle_in_transaction_session_timeout'",
    "mariadb": "SELECT @@idle_transaction_timeout",
}
_OWN = {
    "postgresql": {"options": "-c idle_in_transaction_session_timeout=77s"},
    "mariadb": {"init_command": "SET idle_transaction_timeout = 77"},
}


def link_of(connection) -> socket.socket:
    """The driver's socket, a copy."""
    driver = connection.connection.driver_connection
    number = driver.fileno() if hasattr(driver, "fileno") else driver._sock.fileno()
    return socket.fromfd(number, socket.AF_INET, socket.SOCK_STREAM)


def test_a_connection_probes_a_silent_server(database):
    """Keepalives after seconds, not hours, and a limit for what is sent and not acknowledged."""
    with database.engine().connect() as connection, link_of(connection) as link:
        assert link.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        names = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT")
        idle, interval, count, limit = (
            link.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in names
        )
    assert idle + interval * count == SILENT_FOR
    assert limit == SILENT_FOR * 1000


def test_a_server_ends_a_transaction_that_nobody_works_on(database):
    """So that a host that is cut off in one, or frozen, holds no locks for ever."""
    with database.engine().connect() as connection:
        assert connection.exec_driver_sql(_IDLE[database.kind]).scalar() == IDLE_FOR


def test_what_the_application_sets_wins(database):
    """Its own limit of idle transactions, its own timeouts in the URL."""
    engine = database.engine(connect_args=_OWN[database.kind])
    with engine.connect() as connection:
        assert connection.exec_driver_sql(_IDLE[database.kind]).scalar() == 77
    url = make_url(database.url).update_query_dict({"connect_timeout": "3"})
    _, options = create_store_engine(url).dialect.create_connect_args(url)
    assert int(options["connect_timeout"]) == 3
    with database.engine(url.render_as_string(hide_password=False)).connect():
        pass


def test_a_connection_that_can_not_be_set_up_is_closed(database, monkeypatch):
    """Nothing is left open where the server refuses the settings."""
    from batchmill.store import links

    monkeypatch.setattr(links, "_SET_POSTGRESQL", "SELECT nonsense")
    monkeypatch.setattr(links, "_SET_MARIADB", "SELECT nonsense")
    engine = database.engine()
    for _ in range(3):
        with pytest.raises(DBAPIError):
            engine.connect()
    assert engine.pool.checkedout() == 0


def test_a_server_that_takes_no_connection_is_noticed_soon(database):
    """One that accepts and never says anything: StoreUnavailable after the connect timeout."""
    with socket.socket() as silent:
        silent.bind((LOOPBACK, free_port()))
        silent.listen()
        url = make_url(database.url).set(port=silent.getsockname()[1])
        timeout = {"connect_args": {"connect_timeout": 2, **_reads_within(database, 2)}}
        engine = database.engine(url.render_as_string(hide_password=False), **timeout)
        begun = time.monotonic()
        with pytest.raises(StoreUnavailable):
            BatchRepository(engine).count_live_jobs()
        assert time.monotonic() - begun < 8


def _reads_within(database, seconds: int) -> dict[str, int]:
    """PyMySQL's connect timeout is over once the server has accepted."""
    return {"read_timeout": seconds} if database.kind == "mariadb" else {}


@pytest.mark.soak
@pytest.mark.timeout(150)
def test_a_frozen_clients_transaction_ends(database):
    """Its locks are free again after about IDLE_FOR seconds, and it is told when it wakes."""
    store = database.store()
    lock = "SELECT nbytes FROM batch_total WHERE shard = 0 FOR UPDATE"
    with store.engine.connect() as frozen, ThreadPoolExecutor(1) as pool:
        frozen.exec_driver_sql(lock)
        begun = time.monotonic()
        pool.submit(database.query, lock).result(IDLE_FOR * 2)
        assert IDLE_FOR - 2 < time.monotonic() - begun < IDLE_FOR + 10
        with pytest.raises(DBAPIError):
            frozen.exec_driver_sql("SELECT 1")
        with contextlib.suppress(DBAPIError):
            frozen.rollback()
