"""Cases from the field (shared/cases.md) that a server's own ways bring about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, text

from batchmill.errors import InvalidInput, StoreError, TargetError
from batchmill.records import BatchTarget, Outcome
from batchmill.runner import Result, Runner, RunnerConfig, Target
from batchmill.store import BatchRepository
from tests.runner.helpers import User
from tests.servers.conftest import MakeEngine
from tests.store.support import HOUR, WIDE, done, exchange, finish, job, submit, targets
from tests.store.test_cases import (
    test_case_30_bytes_and_times_beyond_32_bits,
    test_case_31_names_compare_by_bytes,
)

__all__ = [
    "test_case_30_bytes_and_times_beyond_32_bits",
    "test_case_31_names_compare_by_bytes",
]

PATIENCE = 30.0
STRICT = "STRICT_TRANS_TABLES"
MODES = [pytest.param(STRICT, id="strict"), pytest.param("", id="not strict")]
MIB = 1024 * 1024
ODD = 'it\'s "é" \\ € \U0001f600 \r\n\t\x1a %s %% {} '
"""What has to be quoted, escaped or encoded on its way."""

Raw = Callable[..., list[tuple[Any, ...]]]


def long_text(nbytes: int) -> str:
    """A text of exactly so many bytes in UTF-8."""
    whole = nbytes // len(ODD.encode())
    return ODD * whole + "x" * (nbytes - whole * len(ODD.encode()))


@contextmanager
def packets(engine: Engine, nbytes: int) -> Iterator[None]:
    """The server takes statements of so many bytes on connections made from here on."""
    with engine.begin() as connection:
        usual = connection.execute(text("SELECT @@global.max_allowed_packet")).scalar()
        connection.execute(text(f"SET GLOBAL max_allowed_packet = {nbytes}"))
    try:
        yield
    finally:
        with engine.begin() as connection:
            connection.execute(text(f"SET GLOBAL max_allowed_packet = {usual}"))


def in_mode(engines: MakeEngine, like: Engine, mode: str) -> BatchRepository:
    """A repository whose connections are in this SQL mode."""
    return BatchRepository(
        engines(like, connect_args={"init_command": f"SET SESSION sql_mode = '{mode}'"})
    )


def fetched(store: BatchRepository, what: dict[str, Any], **config: Any) -> Any:
    """A finished job of these targets by URL, and what each brings: a Result or what it raises."""

    def fetch(_context: object, _caller: object, target: Target) -> Result:
        brought = what[target.url]
        if isinstance(brought, BaseException):
            raise brought
        return Result(brought)

    with Runner(store, fetch, RunnerConfig(**config)) as runner:
        job_id = runner.submit(User("ann"), list(what)).job_id
        runner.wait(job_id, PATIENCE)
        report = runner.status(job_id)
    assert report is not None
    return report


@pytest.mark.parametrize("text", ["a\x00b", "\ud83d"], ids=["NUL", "surrogate"])
def test_case_22_text_that_a_database_cannot_hold(store: BatchRepository, text: str) -> None:
    """In a result, an error or a hint it fails that one target or comes back as it was."""
    what = {"result": text, "error": ValueError(text), "hint": TargetError("e", hint=text)}
    report = fetched(store, {**what, "good": "fine"})
    assert (report.job.status, report.job.targets_done) == ("partial", 4)
    result, error, hint, good = report.targets
    assert result.result == Result(text) if text == "a\x00b" else result.status == "failed"
    assert [each.status for each in (error, hint, good)] == ["failed", "failed", "done"]
    assert error.error == text.replace("\x00", "\ufffd").replace("\ud83d", "\ufffd")
    assert hint.hint == error.error
    assert good.result == Result("fine")


@pytest.mark.parametrize("text", ["a\x00b", "\ud83d"], ids=["NUL", "surrogate"])
def test_case_22_a_submit_and_a_status_with_such_a_text(
    store: BatchRepository, raw: Raw, text: str
) -> None:
    """In a url, options or a job's error it is refused by the field's name; nothing is stored."""
    options: dict[str, Any] = {"queue": "default", "home": None, "limits": WIDE, "now": 100}
    for field in ("url", "options"):
        bad = BatchTarget("", 1, **({"url": "u"} | {field: text}))
        with pytest.raises(InvalidInput, match=f"^target.{field}: must not contain a"):
            store.submit_job(job("a", targets_total=2), [*targets(1), bad], **options, ttl=HOUR)
    assert raw("SELECT count(*) FROM batch_job") == [(0,)]
    submit(store, "a")
    with pytest.raises(InvalidInput, match="^error: must not contain a"):
        store.set_job_status("a", "failed", now=100, error=text)
    (claim,) = exchange(store).claims
    exchange(store, [Outcome("a", 0, claim.token, "fail_job", error=text)])
    ended = store.get_job("a")
    assert ended is not None
    assert (ended.status, "can't be stored" in ended.error) == ("failed", True)


@pytest.mark.parametrize("spoken", ["utf8", "latin1", "ascii"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.mariadb
def test_case_22_mariadb_is_spoken_to_in_utf8mb4(maria: Engine, mode: str, spoken: str) -> None:
    """An application's engine with another character set is refused, also for ASCII alone.

    Not strict, MariaDB would store question marks; strict, such a target would be tried for ever.
    """
    asked = {"init_command": f"SET SESSION sql_mode = '{mode}'", "charset": spoken}
    _refused(create_engine(maria.url, connect_args=asked), "charset=utf8mb4")


def test_case_22_postgresql_is_spoken_to_in_utf8(postgres: Engine, engines: MakeEngine) -> None:
    """So is one with another client encoding; ours asks for it, whatever the database's is."""
    engine = create_engine(postgres.url, connect_args={"client_encoding": "latin1"})
    _refused(engine, "client_encoding=utf8")
    with postgres.begin() as connection:
        database = connection.execute(text("SELECT current_database()")).scalar()
        connection.execute(text(f"ALTER DATABASE {database} SET client_encoding = latin1"))
    try:
        assert submit(BatchRepository(engines(postgres)), "a").job_id == "a"
    finally:
        with postgres.begin() as connection:
            connection.execute(text(f"ALTER DATABASE {database} RESET client_encoding"))


def _refused(engine: Engine, remedy: str) -> None:
    store = BatchRepository(engine)
    for call in (lambda: submit(store, "a"), lambda: store.get_job("a"), store.nbytes):
        with pytest.raises(InvalidInput, match=f"^connection: its texts are .*{remedy}"):
            call()
    with engine.connect() as connection, pytest.raises(InvalidInput, match="^connection: "):
        submit(store, "a", within=connection)
    with pytest.raises(InvalidInput, match="^connection: "):
        Runner(store, print, resolve_caller=lambda *_: None).start()  # type: ignore[arg-type]
    engine.dispose()


def test_case_27_long_texts_come_back_byte_for_byte(store: BatchRepository, raw: Raw) -> None:
    """On each server: url, options, result, error and hint of 70,000 bytes, and a job's error."""
    long = long_text(70_000)
    submit(store, "a")
    store.create_job(job("b", targets_total=2, error=long))
    store.put_targets("b", [BatchTarget("", idx, long, long) for idx in range(2)])
    store.update_target("b", 0, now=100, status="done", result=long)
    store.update_target("b", 1, now=100, status="failed", error=long, hint=long)
    assert store.get_targets("b") == [
        BatchTarget("b", 0, long, long, "done", long),
        BatchTarget("b", 1, long, long, "failed", None, long, long),
    ]
    kept = store.get_job("b")
    assert kept is not None
    assert (kept.error, kept.nbytes) == (long, 70_000)
    (claim,) = exchange(store).claims
    exchange(store, [done(claim, long)], want=0)
    assert raw("SELECT sum(octet_length(result)) FROM batch_target") == [(store.nbytes(),)]
    assert store.nbytes() == 140_000


@pytest.mark.mariadb
@pytest.mark.parametrize("mode", MODES)
def test_case_27_mariadb_keeps_long_texts_in_any_mode(
    maria: Engine, engines: MakeEngine, mode: str
) -> None:
    """What a fetch brings, 70,000 bytes of it, is there to the byte, strict SQL mode or not."""
    store, long = in_mode(engines, maria, mode), long_text(70_000)
    what = {long: long, "error": TargetError(long, hint=long)}
    report = fetched(store, what)
    first, second = report.targets
    assert (first.url, first.result) == (long, Result(long))
    assert (second.error, second.hint) == (long, long)
    stored = store.get_targets(report.job.id)
    assert stored is not None
    assert store.nbytes() == report.job.nbytes == len(str(stored[0].result).encode()) > 70_000


@pytest.mark.mariadb
@pytest.mark.parametrize("mode", MODES)
def test_case_27_mariadb_fails_what_is_over_its_packet(
    maria: Engine, engines: MakeEngine, mode: str
) -> None:
    """A result of 17 MB is that one target's failure, which says the sizes; the others are done."""
    store = in_mode(engines, maria, mode)
    report = fetched(store, {"1": "a", "big": "x" * 17 * MIB, "2": "b", "3": "c"})
    assert (report.job.status, report.job.targets_done) == ("partial", 4)
    assert [each.status for each in report.targets] == ["done", "failed", "done", "done"]
    error = report.targets[1].error
    assert error.startswith("the outcome can't be stored: result: is larger than the database")
    assert "max_allowed_packet is 16777216" in error
    assert store.nbytes() == report.job.nbytes == 3 * len('{"content":"a"}')


@pytest.mark.mariadb
@pytest.mark.parametrize("mode", MODES)
def test_case_27_mariadb_keeps_what_its_packet_admits(
    maria: Engine, engines: MakeEngine, mode: str
) -> None:
    """With a larger ``max_allowed_packet`` the 17 MB are there to the byte."""
    big = long_text(17 * MIB)
    with packets(maria, 128 * MIB):
        store = in_mode(engines, maria, mode)
        submit(store, "a", 2)
        (claim,) = exchange(store).claims
        answer = exchange(store, [done(claim, big)], want=0)
        assert (answer.stored, answer.unstorable) == ([claim.token], [])
        (first, _) = store.get_targets("a") or ()
        assert first.result == big
        assert store.nbytes() == 17 * MIB


@pytest.mark.mariadb
def test_case_27_the_limit_is_met_to_the_byte(maria: Engine, engines: MakeEngine) -> None:
    """The longest result that the server takes is stored, and one byte more is a clear failure."""
    with packets(maria, MIB):
        store = BatchRepository(engines(maria))
        submit(store, "a", 50)
        least, most = MIB - 2000, MIB
        while most - least > 1:  # the statement's own length is nobody's business here
            size = (least + most) // 2
            (claim,) = exchange(store).claims
            answer = exchange(store, [done(claim, "x" * size)], want=0)
            assert answer.stored == [claim.token]
            least, most = (least, size) if answer.unstorable else (size, most)
        assert MIB - 1000 < least < MIB
        tried = [each for each in store.get_targets("a") or () if each.status.finished]
        failed = [each.error for each in tried if each.status == "failed"]
        assert 0 < len(failed) < len(tried)
        assert all("max_allowed_packet is 1048576" in str(error) for error in failed)


@pytest.mark.mariadb
@pytest.mark.parametrize("field", ["url", "options"])
def test_case_27_a_submit_over_the_packet_is_refused(
    maria: Engine, field: str, engines: MakeEngine
) -> None:
    """The error names the field, nothing is half-stored, and the connection goes on."""
    store = BatchRepository(engines(maria, pool_size=1, max_overflow=0))
    bad = BatchTarget("", 1, **({"url": "u"} | {field: "x" * 17 * MIB}))
    options: dict[str, Any] = {"queue": "default", "home": None, "limits": WIDE, "now": 100}
    with pytest.raises(StoreError, match=f"^{field}: is larger than the database takes, .*smaller"):
        store.submit_job(job("a", targets_total=2), [*targets(1), bad], **options, ttl=HOUR)
    assert store.get_job("a") is None
    assert store.get_targets("a") is None
    assert submit(store, "a").job_id == "a"


@pytest.mark.mariadb
def test_case_27_a_submit_of_many_that_fit_is_taken(maria: Engine, engines: MakeEngine) -> None:
    """Targets that fit one by one fit together, however small the packet of the server is."""
    with packets(maria, 64 * 1024):
        store = BatchRepository(engines(maria))
        many = [BatchTarget("", idx, f"u{idx}" + "x" * 50_000) for idx in range(40)]
        options: dict[str, Any] = {"queue": "default", "home": None, "limits": WIDE, "now": 100}
        store.submit_job(job("a", targets_total=40), many, **options, ttl=HOUR)
        assert [each.url for each in store.get_targets("a") or ()] == [each.url for each in many]


@pytest.mark.mariadb
@pytest.mark.parametrize(
    "call",
    [
        lambda store, big: store.create_job(job("new", error=big)),
        lambda store, big: store.put_targets("a", [BatchTarget("", 5, "u", result=big)]),
        lambda store, big: store.update_target("a", 0, now=1, status="done", result=big),
        lambda store, big: store.set_job_status("a", "failed", now=1, error=big),
        lambda store, big: store.mark_in_flight_failed(big, now=1),
    ],
    ids=["create_job", "put_targets", "update_target", "set_job_status", "mark_in_flight_failed"],
)
def test_case_27_each_other_write_over_the_packet_is_refused(
    maria: Engine, call: Callable[[BatchRepository, str], None]
) -> None:
    """It is a StoreError that says the sizes, and changes nothing."""
    store = BatchRepository(maria)
    store.create_job(job("a", targets_total=1))
    store.put_targets("a", targets(1))
    before = store.get_job("a"), store.get_targets("a")
    with pytest.raises(StoreError, match="is larger than the database takes.*max_allowed_packet"):
        call(store, "x" * 17 * MIB)
    assert (store.get_job("a"), store.get_targets("a")) == before
    assert store.nbytes() == 0


@pytest.mark.mariadb
def test_case_27_the_limit_is_asked_for_once_a_connection(
    maria: Engine, engines: MakeEngine, caplog: pytest.LogCaptureFixture
) -> None:
    """Small statements ask nothing, and of many large ones on one connection one does."""
    engine = engines(maria, pool_size=1, max_overflow=0, echo=True)
    store = BatchRepository(engine)
    finish(store, "small")
    assert "max_allowed_packet" not in caplog.text
    for number in range(3):
        finish(store, f"large-{number}", '"' + "x" * 20_000 + '"')
    assert caplog.text.count("SELECT @@max_allowed_packet") == 1


def test_case_s12_bounded_deletes(store: BatchRepository) -> None:
    """A sweep and an eviction delete as many as they are bounded to, oldest first."""
    for number in range(7):
        finish(store, f"j{number}", now=100 + number)
    assert store.sweep(now=10**6, ttl=timedelta(0), limit=2) == 2
    assert store.evict_oldest(max_bytes=0, limit=2) == 2
    assert sorted(kept.id for kept in store.list_jobs()) == ["j4", "j5", "j6"]
    assert store.evict_oldest(max_bytes=2, limit=5) == 2
    assert store.sweep(now=10**6, ttl=timedelta(0)) == 1
    assert store.nbytes() == 0
