"""Statements past psycopg's cursors: few round trips, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, text

from batchmill.errors import StoreError, StoreUnavailable
from batchmill.records import BatchTarget, Outcome
from batchmill.store import BatchRepository
from batchmill.store.wire import Order, Wire, numbered
from tests.servers.conftest import MakeEngine
from tests.store.support import done, exchange, submit

USES = 8
"""More than psycopg's own threshold of five."""


@pytest.fixture
def engine(postgres: Engine, engines: MakeEngine) -> Engine:
    """One connection, on which nobody listens."""
    return engines(postgres, pool_size=1, max_overflow=0)


@pytest.fixture
def repository(engine: Engine) -> BatchRepository:
    """A store on it."""
    return BatchRepository(engine)


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many statements went in each round trip."""
    counted: list[int] = []
    original: Callable[..., Any] = Wire._exchanged

    def exchanged(self: Wire, sent: Any, packed: Any, **named: Any) -> Any:
        counted.append(len(sent))
        return original(self, sent, packed, **named)

    monkeypatch.setattr(Wire, "_exchanged", exchanged)
    return counted


def sql(engine: Engine, statement: str) -> list[Any]:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        answer = connection.execute(text(statement))
        return list(answer) if answer.returns_rows else []


def drained(store: BatchRepository, times: int = 1) -> list[Outcome]:
    """What to store after so many jobs were submitted, and all but the last stored."""
    outcomes: list[Outcome] = []
    for number in range(times):
        submit(store, f"job-{number}", count=2)
        outcomes = [done(claim) for claim in exchange(store, outcomes).claims]
    return outcomes


def test_two_round_trips(repository: BatchRepository, trips: list[int]) -> None:
    """A submit and an exchange are two round trips each, from BEGIN to COMMIT."""
    outcomes = drained(repository)
    trips.clear()
    exchange(repository, outcomes)
    assert len(trips) == 2
    submit(repository, "another", count=3)
    assert len(trips) == 4
    submit(repository, "local", count=3, home="me")
    assert len(trips) == 6


def test_a_missing_row_undoes_all_of_it(engine: Engine, repository: BatchRepository) -> None:
    """What finds no row, just before the COMMIT that was sent with it, leaves nothing stored."""
    outcomes = drained(repository)
    sql(engine, "DELETE FROM batch_total WHERE shard >= 0")
    with pytest.raises(StoreError, match="batch_total is missing"):
        exchange(repository, outcomes)
    assert sql(engine, "SELECT count(*) FROM batch_target WHERE status = 'done'") == [(0,)]
    sql(engine, "INSERT INTO batch_total (shard) SELECT generate_series(0, 7)")
    assert len(exchange(repository, outcomes).stored) == len(outcomes)


@pytest.mark.parametrize(
    "change", ["DEALLOCATE ALL", "ALTER TABLE batch_job ALTER COLUMN error TYPE VARCHAR"]
)
def test_what_was_prepared_may_go(engine: Engine, repository: BatchRepository, change: str) -> None:
    """Statements that are known no more, or whose tables were altered, are sent anew."""
    drained(repository, USES)
    assert repository.get_job("job-0") is not None
    sql(engine, change)
    try:
        submit(repository, "after", count=1)
        assert exchange(repository).claims
        assert repository.get_job("after") is not None
    finally:
        sql(engine, "ALTER TABLE batch_job ALTER COLUMN error TYPE TEXT")


def test_what_was_prepared_may_go_for_writes_alone(
    engine: Engine, repository: BatchRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where only what writes had been prepared, the transaction is begun anew."""
    outcomes = drained(repository, USES)
    sql(engine, "DEALLOCATE ALL")
    original: Callable[..., Any] = Wire._send

    def send(self: Wire, statement: bytes, values: Any, *, prepare: bool) -> Any:
        writes = not statement.startswith(b"SELECT")
        return original(self, statement, values, prepare=prepare and writes)

    monkeypatch.setattr(Wire, "_send", send)
    assert len(exchange(repository, outcomes).stored) == len(outcomes)


@pytest.mark.parametrize(("threshold", "prepared"), [(None, False), (0, True), (5, True)])
def test_what_is_prepared(
    postgres: Engine, engines: MakeEngine, threshold: int | None, *, prepared: bool
) -> None:
    """Statements are prepared as often as the driver would, and never where it must not."""
    engine = engines(
        postgres, pool_size=1, max_overflow=0, connect_args={"prepare_threshold": threshold}
    )
    drained(BatchRepository(engine), USES)
    found = sql(engine, "SELECT name FROM pg_prepared_statements WHERE name LIKE 'batchmill%'")
    assert bool(found) is prepared


def test_another_wire_of_the_same_session(postgres: Engine) -> None:
    """Each prepares under names of its own, as where the application's pool keeps sessions."""
    with psycopg.connect(_plain(postgres), prepare_threshold=0) as driver:
        for _ in range(2):
            wire = Wire(driver)
            for number in range(2):
                order = Order(b"SELECT $1::bigint + 1", [number])
                (result,) = wire.run([order], alone=True)
                assert wire.rows(result) == [(number + 1,)]


def test_a_session_that_keeps_forgetting(engine: Engine, repository: BatchRepository) -> None:
    """Where what was prepared is gone again and again, no more is prepared."""
    drained(repository, USES)
    for number in range(4):
        sql(engine, "DEALLOCATE ALL")
        for _ in range(USES):
            submit(repository, f"after-{number}", idem_key="one")
    assert sql(engine, "SELECT name FROM pg_prepared_statements WHERE name LIKE 'batchmill%'") == []


def test_a_pipeline_of_the_applications_own(repository: BatchRepository) -> None:
    """Inside the application's own pipeline nothing is sent past it."""
    with repository.engine.connect() as connection, connection.begin():
        driver: Any = connection.connection.driver_connection
        with driver.pipeline():
            submit(repository.bound_to(connection), "piped", count=2)
    assert repository.get_job("piped") is not None


def test_an_end_in_the_middle(
    engine: Engine, repository: BatchRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt between sending and the answers closes the connection, and stores nothing."""
    outcomes = drained(repository)

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Wire, "_collect", interrupted)
        with pytest.raises(KeyboardInterrupt):
            exchange(repository, outcomes)
    assert engine.pool.checkedout() == 0  # type: ignore[attr-defined]
    assert len(exchange(repository, outcomes).stored) == len(outcomes)


def test_a_server_that_ends_the_connection(postgres: Engine) -> None:
    """A connection that the server ends is lost, in the middle of the answers too."""
    with psycopg.connect(_plain(postgres)) as driver:
        wire = Wire(driver)
        with pytest.raises(psycopg.OperationalError):
            wire.run([Order(b"SELECT pg_terminate_backend(pg_backend_pid())", ())], alone=True)
        assert driver.closed


def test_a_commit_without_an_answer_is_not_repeated(
    repository: BatchRepository, postgres: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection lost together with the COMMIT is the caller's to look into, not tried again."""
    outcomes = drained(repository)
    original: Callable[..., Any] = Wire._exchanged
    killed: list[str] = []

    def exchanged(self: Wire, sent: Any, packed: Any, **named: Any) -> Any:
        if sent[-1].text == b"COMMIT":
            killed.append("once")
            sql(postgres, f"SELECT pg_terminate_backend({self.driver.info.backend_pid})")
        return original(self, sent, packed, **named)

    monkeypatch.setattr(Wire, "_exchanged", exchanged)
    with pytest.raises(StoreUnavailable):
        exchange(repository, outcomes)
    assert killed == ["once"]


def test_an_answer_to_a_commit_that_never_comes(
    repository: BatchRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit that was done, but whose answer was lost, is done once, and the caller is told."""
    outcomes = drained(repository)
    original: Callable[..., Any] = Wire._collect

    def collect(self: Wire, results: list[Any]) -> Any:
        yield from original(self, results)
        if any(result.command_status == b"COMMIT" for result in results):
            raise psycopg.OperationalError("the connection is lost")

    with monkeypatch.context() as patched:
        patched.setattr(Wire, "_collect", collect)
        with pytest.raises(StoreUnavailable):
            exchange(repository, outcomes)
    assert exchange(repository, outcomes).refused == [outcome.token for outcome in outcomes]
    assert sum(row.status == "done" for row in _targets(repository, outcomes)) == len(outcomes)


def _targets(repository: BatchRepository, outcomes: list[Outcome]) -> list[BatchTarget]:
    found = [repository.get_targets(each.job_id, start=each.idx, limit=1) for each in outcomes]
    return [row for rows in found for row in rows]


def test_places_of_parameters() -> None:
    """A parameter that stands twice is one, and a doubled percent sign is one."""
    assert numbered("a = %(x)s AND b = %(y)s OR c %% %(x)s") == (
        ["x", "y"],
        b"a = $1 AND b = $2 OR c % $1",
    )


@pytest.mark.parametrize(
    "values",
    [['"', "\\", "{}", "a,b", "NULL", "", "\n\t", "é€😀", " x "], [None, "x"], [], [1, None, -5]],
)
def test_lists(postgres: Engine, values: list[Any]) -> None:
    """Every list goes in as it is, whatever has to be quoted in it."""
    kind = b"bigint[]" if 1 in values else b"text[]"
    with psycopg.connect(_plain(postgres)) as driver:
        wire = Wire(driver)
        (result,) = wire.run([Order(b"SELECT $1::%b" % kind, [values])], alone=True)
        assert wire.rows(result) == [(values,)]


def test_a_nul_is_refused(postgres: Engine) -> None:
    """A text with NUL isn't cut there, but refused as psycopg would."""
    with psycopg.connect(_plain(postgres)) as driver, pytest.raises(psycopg.DataError):
        Wire(driver).run([Order(b"SELECT $1::text", ["a\0b"])], alone=True)


def _plain(engine: Engine) -> str:
    url = engine.url.set(drivername="postgresql")
    return url.render_as_string(hide_password=False)
