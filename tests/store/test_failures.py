"""What goes wrong in the database comes out as an error of ours that tells nothing secret."""

from __future__ import annotations

import os
import sqlite3
import traceback
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, text

from batchmill.errors import (
    InvalidInput,
    NotMigrated,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreUnavailable,
)
from batchmill.records import Outcome
from batchmill.store import BatchRepository, create_store_engine, migrate, transactions
from tests.store.support import done, exchange, job, submit

SECRETS = ("INSERT", "SELECT", "UPDATE", "batch_job", "s3cret-url", "VALUES", "sqlite:///", "(?")


def _told(error: BaseException) -> str:
    """All that any log would show of an error, whatever contexts it walks."""
    shown = []
    left: list[BaseException | None] = [error]
    while left:
        seen = left.pop()
        if seen is not None:
            shown += [*traceback.format_exception_only(seen), str(seen), repr(seen.args)]
            left += [seen.__cause__, seen.__context__]
    return "".join(shown)


def test_a_database_without_tables_says_what_to_run(sqlite_url: str) -> None:
    """NotMigrated names the upgrade, and keeps the driver's error as its cause."""
    engine = create_store_engine(sqlite_url)
    with pytest.raises(NotMigrated, match="run batchmill.store.migrate.upgrade") as caught:
        BatchRepository(engine).get_job("a")
    assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
    engine.dispose()


def test_a_file_that_is_no_database_is_unavailable(tmp_path: Path) -> None:
    """A text file in the database's place gets a clear error."""
    path = tmp_path / "text.db"
    path.write_text("this is not a database, but long enough to be taken for one" * 100)
    engine = create_store_engine(f"sqlite:///{path}")
    with pytest.raises(StoreUnavailable, match="not a database"):
        BatchRepository(engine).get_job("a")
    engine.dispose()


def test_a_folder_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    """A path into nowhere gets a clear error that doesn't show the path."""
    engine = create_store_engine(f"sqlite:///{tmp_path}/nowhere/x.db")
    with pytest.raises(StoreUnavailable, match="can't be opened") as caught:
        BatchRepository(engine).get_job("a")
    assert "nowhere" not in _told(caught.value)
    engine.dispose()


def test_a_database_that_stays_locked_is_busy(path, store, monkeypatch) -> None:
    """Another writer that doesn't end makes a write busy after a bounded wait; a read works."""
    monkeypatch.setattr(transactions, "PATIENCE", 0.05)
    engine = create_store_engine(f"sqlite:///{path}", connect_args={"timeout": 0.01})
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    quick = BatchRepository(engine)
    with pytest.raises(StoreBusy, match="locked by another writer"):
        quick.create_job(job("a"))
    assert quick.get_job("a") is None
    other.execute("ROLLBACK")
    quick.create_job(job("a"))
    other.close()
    engine.dispose()


def test_a_busy_database_is_tried_again(path, store, monkeypatch) -> None:
    """cases.md S17: a call that meets a locked database waits and succeeds when it is free."""
    engine = create_store_engine(f"sqlite:///{path}", connect_args={"timeout": 0.001})
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    pauses = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            other.execute("ROLLBACK")

    monkeypatch.setattr(transactions.time, "sleep", pause)
    BatchRepository(engine).create_job(job("a"))
    assert len(pauses) == 3
    other.close()
    engine.dispose()


def test_a_full_database_says_so_and_keeps_what_it_has(engine: Engine, store) -> None:
    """cases.md S22: a submit into a full database is StoreFull, reads and a sweep still work."""
    submit(store, "old", 3)
    full = create_store_engine(str(engine.url), pool_size=1, max_overflow=0)
    with full.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    tight = BatchRepository(full)
    with pytest.raises(StoreFull, match="no room left; free disk space, sweep or evict"):
        submit(tight, "new", 500)
    assert tight.get_job("new") is None
    assert len(tight.get_targets("old") or ()) == 3
    assert tight.delete_job("old")
    full.dispose()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to any file")
def test_a_read_only_file_is_unavailable(path: Path, store) -> None:
    """A file without write permission says which permissions to check."""
    path.chmod(0o444)
    engine = create_engine(f"sqlite:///{path}")
    with pytest.raises(StoreUnavailable, match="check the file's and folder's permissions"):
        BatchRepository(engine).create_job(job("a"))
    engine.dispose()


def test_a_database_opened_read_only_is_unavailable(path: Path, store) -> None:
    """A connection that may not write says so."""
    engine = create_engine(f"sqlite:///file:{path}?mode=ro&uri=true")
    with pytest.raises(StoreUnavailable, match="can't be written to"):
        BatchRepository(engine).create_job(job("a"))
    engine.dispose()


def test_no_error_tells_sql_or_values(store: BatchRepository, engine: Engine) -> None:
    """cases.md S9: neither the error nor what a traceback shows of it holds SQL or parameters."""
    with engine.begin() as connection:
        connection.execute(
            text(
                "CREATE TRIGGER fail BEFORE INSERT ON batch_target "
                "BEGIN SELECT RAISE(ABORT, 'refused'); END"
            )
        )
    with pytest.raises(StoreError) as caught:
        submit(store, "s3cret-url", 2)
    told = _told(caught.value)
    assert not [secret for secret in SECRETS if secret in told]


def _refuse_long_results(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(
            text(
                "CREATE TRIGGER small BEFORE UPDATE ON batch_target WHEN length(NEW.result) > 10 "
                "BEGIN SELECT RAISE(ABORT, 'too long'); END"
            )
        )


def test_a_set_stored_one_by_one_is_answered_as_a_whole(
    store: BatchRepository, engine: Engine
) -> None:
    """It claims what was asked for, and says what was refused, cancelled and is ready when."""
    for name in ("a", "b", "c", "d"):
        submit(store, name)
    claims = exchange(store, want=3).claims
    store.cancel_job("c", now=100)
    _refuse_long_results(engine)
    lost = replace(done(claims[2]), token="lost")
    outcomes = [done(claims[0], '"' + "a" * 20 + '"'), lost, done(claims[1])]
    answer = exchange(store, outcomes, want=2)
    assert [claim.job_id for claim in answer.claims] == ["d"]
    assert list(answer.stored) == [claims[0].token, claims[1].token]
    assert (list(answer.unstorable), list(answer.refused)) == ([claims[0].token], ["lost"])
    assert (list(answer.cancelled), answer.next_ready_at) == (["c"], None)


def test_a_set_stored_one_by_one_says_when_the_next_is_ready(
    store: BatchRepository, engine: Engine
) -> None:
    """What it put back for later is the next to be ready, when nothing could be claimed."""
    submit(store, "a")
    submit(store, "b")
    busy, large = exchange(store, want=2).claims
    _refuse_long_results(engine)
    later = Outcome(busy.job_id, busy.idx, busy.token, "later", ready_at=107.5)
    answer = exchange(store, [later, done(large, '"' + "a" * 20 + '"')], want=1)
    assert (list(answer.claims), answer.next_ready_at) == ([], 107.5)


def test_one_outcome_that_the_database_refuses_does_not_stop_the_others(
    store: BatchRepository, engine: Engine
) -> None:
    """The set is stored one by one; the one that can't be is stored as failed, and said so."""
    for name in ("a", "b", "c"):
        submit(store, name)
    claims = exchange(store, want=3).claims
    _refuse_long_results(engine)
    outcomes = [done(claims[0], '"a"'), done(claims[1], '"' + "b" * 20 + '"'), done(claims[2])]
    answer = exchange(store, outcomes, want=0)
    assert list(answer.stored) == [claim.token for claim in claims]
    assert list(answer.unstorable) == [claims[1].token]
    assert [settled.status for settled in answer.settled] == ["done", "failed", "done"]
    (target,) = store.get_targets("b") or ()
    assert target.error == "the outcome can't be stored: the database refused it; make it smaller"
    assert store.nbytes() == len('"a"') + len("{}")


def test_a_passing_error_stores_nothing_of_the_set(
    store: BatchRepository, engine: Engine, monkeypatch
) -> None:
    """A full database does not turn results into failures: the set can be tried again."""
    submit(store, "a")
    (claim,) = exchange(store).claims
    full = create_store_engine(str(engine.url), pool_size=1, max_overflow=0)
    with full.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    big = done(claim, '"' + "x" * 200_000 + '"')
    with pytest.raises(StoreFull):
        exchange(BatchRepository(full), [big], want=0)
    full.dispose()
    assert exchange(store, [big], want=0).stored == [claim.token]


def test_a_database_that_fills_up_stores_nothing_of_a_set_tried_one_by_one(
    store: BatchRepository, engine: Engine
) -> None:
    """Where SQLite then gives up the whole transaction, no outcome counts as stored."""
    for name in ("a", "b", "c"):
        submit(store, name)
    claims = exchange(store, want=3).claims
    full = create_store_engine(engine.url, pool_size=1, max_overflow=0)
    with full.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 5}")
        driver = connection.connection.driver_connection
        assert driver is not None
        driver.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 300_000)
    too_long, too_much = '"' + "b" * 400_000 + '"', '"' + "c" * 200_000 + '"'
    outcomes = [done(claims[0]), done(claims[1], too_long), done(claims[2], too_much)]
    with pytest.raises(StoreFull):
        exchange(BatchRepository(full), outcomes, want=0)
    full.dispose()
    assert store.stats().targets == {"running": 3}
    assert exchange(store, outcomes, want=0).stored == [claim.token for claim in claims]


def test_a_missing_total_says_what_to_run(store: BatchRepository, raw) -> None:
    """A database whose kept total was deleted names the upgrade instead of failing oddly."""
    raw("DELETE FROM batch_total")
    with pytest.raises(StoreError, match="batch_total"):
        submit(store, "a")
    assert store.get_job("a") is None


def test_odd_arguments_are_refused_before_the_database_sees_them(store: BatchRepository) -> None:
    """A NUL in an id names the argument."""
    with pytest.raises(InvalidInput, match="job_id: must not contain a NUL"):
        store.get_job("a\x00b")
    migrate.verify(store.engine)
