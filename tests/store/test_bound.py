"""``bound_to``: the repository inside the application's own transaction."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import IntegrityError, InvalidRequestError
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from batchmill.errors import (
    InvalidInput,
    InvalidTransition,
    StoreBusy,
    StoreError,
    StoreFull,
    TargetExists,
)
from batchmill.store import BatchJobRow, BatchRepository
from batchmill.store.engine import create_store_engine
from tests.store.support import HOUR, WIDE, job, submit, targets


def _orders(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE orders (id TEXT PRIMARY KEY)"))


def test_both_commit_with_the_application(store: BatchRepository, raw) -> None:
    """The application's row and its job are both there after its commit."""
    _orders(store.engine)
    with store.engine.begin() as connection:
        connection.execute(text("INSERT INTO orders VALUES ('o')"))
        submit(store.bound_to(connection), "a", 2)
    assert raw("SELECT count(*) FROM orders") == [(1,)]
    assert raw("SELECT count(*) FROM batch_target") == [(2,)]


def test_neither_survives_a_rollback(store: BatchRepository, raw) -> None:
    """Nothing of a submit is left when the application rolls back."""
    _orders(store.engine)
    with Session(store.engine) as session:
        session.execute(text("INSERT INTO orders VALUES ('o')"))
        submit(store, "a", 2, within=session)
        session.rollback()
    for table in ("orders", "batch_job", "batch_target", "batch_turn"):
        assert raw(f"SELECT count(*) FROM {table}") == [(0,)]


def test_it_never_commits(store: BatchRepository, raw) -> None:
    """Another connection sees nothing before the application's own commit."""
    with Session(store.engine) as session:
        bound = store.bound_to(session)
        submit(bound, "a")
        bound.sweep(now=0, ttl=HOUR)
        bound.evict_oldest(max_bytes=0)
        assert raw("SELECT count(*) FROM batch_job") == [(0,)]
        session.commit()
    assert raw("SELECT count(*) FROM batch_job") == [(1,)]


def test_a_call_that_raises_leaves_nothing_in_the_transaction(store: BatchRepository, raw) -> None:
    """After an error the application may go on and commit the rest."""
    store.create_job(job("a", targets_total=2))
    with store.engine.begin() as connection:
        bound = store.bound_to(connection)
        bound.put_targets("a", targets(2))
        with pytest.raises(TargetExists):
            bound.put_targets("a", targets(3))
        with pytest.raises(InvalidTransition):
            bound.set_job_status("a", "failed", now=100)
            bound.set_job_status("a", "queued", now=100)
    assert raw("SELECT count(*) FROM batch_target") == [(2,)]


def test_one_connection_is_enough(path) -> None:
    """Nothing in a bound repository opens a second connection: pool size 1 works."""
    engine = create_store_engine(f"sqlite:///{path}", pool_size=1, max_overflow=0, pool_timeout=1)
    from batchmill.store import migrate

    migrate.upgrade(engine)
    store = BatchRepository(engine)
    with engine.begin() as connection:
        bound = store.bound_to(connection)
        submit(bound, "a")
        assert bound.sweep(now=10_000, ttl=HOUR) == 1
        assert bound.stats().jobs == {}
    engine.dispose()


def test_a_read_before_the_write_opens_no_stale_transaction(path, store: BatchRepository) -> None:
    """A SELECT on a plain engine opens no transaction, so that the write after it succeeds."""
    plain = create_engine(f"sqlite:///{path}")
    with plain.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM batch_job")).scalar() == 0
        store.create_job(job("other"))
        submit(BatchRepository(plain).bound_to(connection), "a")
        connection.commit()
    plain.dispose()
    assert store.count_live_jobs() == 2


def test_a_snapshot_that_another_writer_outdated_is_busy(store: BatchRepository) -> None:
    """A transaction that read first and was overtaken gets StoreBusy, not the driver's error."""
    with store.engine.connect() as connection:
        connection.exec_driver_sql("BEGIN")
        connection.execute(text("SELECT count(*) FROM batch_job")).scalar()
        store.create_job(job("other"))
        with pytest.raises(StoreBusy):
            submit(store.bound_to(connection), "a")
    assert store.get_job("a") is None


def test_a_scoped_session_is_taken_for_its_session(store: BatchRepository) -> None:
    """A scoped_session works like the Session behind it."""
    scoped = scoped_session(sessionmaker(store.engine))
    submit(store.bound_to(scoped), "a")
    scoped.commit()
    scoped.remove()
    assert store.get_job("a") is not None


def test_anything_else_is_refused(store: BatchRepository) -> None:
    """Binding to something that is no connection names the argument."""
    with pytest.raises(InvalidInput, match="within: must be a Connection or a Session, not str"):
        store.bound_to("connection")  # type: ignore[arg-type]


def test_counts_are_shared_with_the_repository_it_came_from(store: BatchRepository) -> None:
    """Hits and misses of a bound repository are those of its origin."""
    with store.engine.begin() as connection:
        store.bound_to(connection).get_job("nobody")
    assert store.stats().misses == {"get_job": 1}


def test_caps_count_what_the_transaction_has_not_committed_yet(store: BatchRepository) -> None:
    """Two submits in one transaction see each other."""
    one = WIDE.__class__(targets_per_job=5, jobs_per_caller=1, jobs_total=5)
    with store.engine.begin() as connection:
        bound = store.bound_to(connection)
        assert submit(bound, "a", limits=one).job_id == "a"
        assert submit(bound, "b", limits=one).rejected.__name__ == "CallerBusy"


def test_a_session_of_several_databases_uses_ours(store: BatchRepository) -> None:
    """A Session that is bound table by table gives the connection that our tables are bound to."""
    other = create_engine("sqlite://")
    with Session(binds={BatchJobRow: store.engine, object: other}) as session:
        submit(store.bound_to(session), "a")
        session.commit()
    assert store.get_job("a") is not None
    other.dispose()


@pytest.mark.parametrize("kind", ["connection", "session"])
def test_a_full_database_ends_the_applications_transaction(
    store: BatchRepository, raw, kind: str
) -> None:
    """When SQLite gave all of it up, StoreFull says why, and none of it can be committed any more.

    Not even what follows in it: its beginning would be missing.
    """
    _orders(store.engine)
    full = create_store_engine(store.engine.url, pool_size=1, max_overflow=0)
    with full.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    tight = BatchRepository(full)
    application = full.begin() if kind == "connection" else Session(full)
    with application as within:
        within.execute(text("INSERT INTO orders VALUES ('before')"))
        with pytest.raises(StoreFull, match="no room left"):
            tight.bound_to(within).create_job(job("big", error="x" * 500_000))
        with pytest.raises(InvalidRequestError):
            within.execute(text("INSERT INTO orders VALUES ('after')"))
            within.commit()
    full.dispose()
    assert raw("SELECT count(*) FROM orders") == [(0,)]


def test_a_session_that_failed_before_says_so_and_quotes_nothing(store: BatchRepository) -> None:
    """The application's own failed statement, which SQLAlchemy quotes, is in no error of ours."""
    with Session(store.engine) as session:
        session.add(BatchJobRow(id="a", caller="s3cret-caller"))
        with pytest.raises(IntegrityError):
            session.flush()
        with pytest.raises(StoreError, match="must be rolled back first") as caught:
            submit(store.bound_to(session), "b")
    shown = caught.value.__cause__, caught.value.__context__
    assert "s3cret-caller" not in "".join(map(str, shown))


def test_a_closed_connection_says_so(store: BatchRepository) -> None:
    """A connection that the application has given back can't be used, and the error says that."""
    with store.engine.connect() as connection:
        pass
    with pytest.raises(StoreError, match="can't be used as it is: it is closed"):
        submit(store.bound_to(connection), "a")
