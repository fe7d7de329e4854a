"""LISTEN and NOTIFY on PostgreSQL: who is woken, when, and what becomes of a lost connection."""

from __future__ import annotations

import gc
import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.orm import Session
from sqlalchemy.schema import CreateSchema, DropSchema

from batchmill.errors import InvalidInput, NotMigrated
from batchmill.records import Outcome
from batchmill.runner import Result, Runner, RunnerConfig
from batchmill.store import BatchRepository, create_store_engine, listening, migrate
from tests.runner.helpers import User
from tests.servers.conftest import MakeEngine
from tests.store.support import done, exchange, submit
from tests.support.script import hears, script, tell

PATIENCE = 20.0
QUIET = 0.3
"""Seconds in which nothing may be heard."""
BACKENDS = """
SELECT pid FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND (query LIKE 'LISTEN%' OR query LIKE '%pg_listening_channels%')
"""


class Bell:
    """Counts how often it was rung."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._rung = 0

    def ring(self) -> None:
        with self._changed:
            self._rung += 1
            self._changed.notify_all()

    def rings(self, within: float = PATIENCE) -> bool:
        """Whether it has been rung since this was asked last, or is by then."""
        with self._changed:
            heard = self._changed.wait_for(lambda: self._rung > 0, within)
            self._rung = 0
            return heard


@pytest.fixture
def bell() -> Bell:
    """What is rung when there may be work."""
    return Bell()


@pytest.fixture
def store(postgres: Engine) -> BatchRepository:
    """A repository on PostgreSQL."""
    return BatchRepository(postgres)


@contextmanager
def heard(store: BatchRepository, bell: Bell, queue: str | None = "default") -> Iterator[None]:
    """The bell hears of this queue; the ring of the beginning is over."""
    subscription = store.subscribe(bell.ring, queue=queue)
    assert subscription is not None
    with subscription:
        assert bell.rings()
        yield


def backends(engine: Engine) -> list[int]:
    """The server's processes that listen."""
    with engine.connect() as connection:
        return [pid for (pid,) in connection.execute(text(BACKENDS))]


def test_a_submit_is_heard(store: BatchRepository, bell: Bell) -> None:
    """Whoever listens to the queue is woken by a submit, and by each one after it."""
    with heard(store, bell):
        for job_id in ("a", "b"):
            submit(store, job_id)
            assert bell.rings()


def test_only_its_queue_is_heard(store: BatchRepository, bell: Bell) -> None:
    """A submit to another queue wakes nobody, not even where one's name begins the other's."""
    with heard(store, bell, "mail"):
        for queue in ("default", "mail2", "mai", "MAIL"):
            submit(store, f"of-{queue}", queue=queue)
        assert not bell.rings(QUIET)
        submit(store, "mine", queue="mail")
        assert bell.rings()


@pytest.mark.parametrize("queue", ["é" * 255, "it's \\ \" % $1", " "])
def test_any_name_of_a_queue_is_heard(store: BatchRepository, bell: Bell, queue: str) -> None:
    """The longest name, and one that would have to be quoted in SQL, is heard as it is."""
    with heard(store, bell, queue):
        submit(store, "other", queue="x" * 255)
        assert not bell.rings(QUIET)
        submit(store, "a", queue=queue)
        assert bell.rings()


def test_every_queue_is_heard_without_a_name(store: BatchRepository, bell: Bell) -> None:
    """With no queue named, each wakes."""
    with heard(store, bell, None):
        for queue in ("one", "two"):
            submit(store, queue, queue=queue)
            assert bell.rings()


def test_what_brings_no_work_is_not_heard(store: BatchRepository, bell: Bell) -> None:
    """A reused submit, a rejected one, a claim, a stored target, a busy one and a cancel."""
    submit(store, "a", 3)
    submit(store, "b", 1)
    with heard(store, bell):
        assert submit(store, "again", 3, idem_key="key-a").reused
        assert submit(store, "none", 0).rejected is not None
        (claim,) = exchange(store).claims
        (other,) = exchange(store, [done(claim)], want=1).claims
        busy = Outcome(other.job_id, other.idx, other.token, "later", ready_at=500)
        exchange(store, [busy], want=1)
        store.cancel_job("b", now=100)
        store.hold("r", [], now=100, hold_for=60)
        assert not bell.rings(QUIET)


def test_a_put_back_is_heard(store: BatchRepository, bell: Bell) -> None:
    """A runner that ends tells the others of the target that it puts back."""
    submit(store, "a")
    (claim,) = exchange(store).claims
    with heard(store, bell):
        back = Outcome(claim.job_id, claim.idx, claim.token, "put_back")
        exchange(store, [back], want=0)
        assert bell.rings()


def test_a_last_store_is_heard(store: BatchRepository, bell: Bell) -> None:
    """A runner that stores and claims no more leaves the job's next target to the others."""
    submit(store, "a", 2)
    (claim,) = exchange(store).claims
    with heard(store, bell):
        exchange(store, [done(claim)], want=0)
        assert bell.rings()


def test_a_release_is_heard(store: BatchRepository, bell: Bell) -> None:
    """What a lost runner left is told of in its own queue when it is put back."""
    submit(store, "a", queue="mail")
    exchange(store, queue="mail")
    with heard(store, bell, "mail"):
        released = store.release_lost(now=1000, hold_for=60, max_attempts=3, limit=10)
        assert released.put_back == 1
        assert bell.rings()


def test_a_release_that_fails_a_target_is_heard(store: BatchRepository, bell: Bell) -> None:
    """The target after one that was lost for the last time is work for others too."""
    submit(store, "a", 2)
    exchange(store)
    with heard(store, bell):
        released = store.release_lost(now=1000, hold_for=60, max_attempts=1, limit=10)
        assert (released.put_back, len(released.failed), released.settled) == (0, 1, [])
        assert bell.rings()


@pytest.mark.parametrize("kind", ["connection", "session"])
def test_it_comes_with_the_applications_commit(
    store: BatchRepository, bell: Bell, kind: str
) -> None:
    """A submit in the application's transaction is heard once that has committed, not before."""
    begun = store.engine.connect() if kind == "connection" else Session(store.engine)
    with heard(store, bell), begun as within:
        submit(store, "a", within=within)
        assert not bell.rings(QUIET)
        within.commit()
        assert bell.rings()
        assert exchange(store).claims


def test_a_rollback_is_not_heard(store: BatchRepository, bell: Bell) -> None:
    """Nothing is heard of a submit that the application rolls back."""
    with heard(store, bell), store.engine.connect() as connection:
        submit(store, "a", within=connection)
        connection.rollback()
        assert not bell.rings(QUIET)


@pytest.fixture
def schema(postgres: Engine) -> Iterator[str]:
    """A migrated schema beside the default one, under a name that has to be quoted."""
    name = 'O\'Brien "%s" :x'
    with postgres.begin() as connection:
        connection.execute(CreateSchema(name))
    migrate.upgrade(postgres, schema=name)
    yield name
    with postgres.begin() as connection:
        connection.execute(DropSchema(name, cascade=True))


def test_schemas_do_not_hear_each_other(store: BatchRepository, bell: Bell, schema: str) -> None:
    """Who listens on one schema's tables isn't woken by a submit to those of another."""
    other, theirs = BatchRepository(store.engine, schema=schema), Bell()
    with heard(store, bell), heard(other, theirs):
        submit(other, "a")
        assert theirs.rings()
        assert not bell.rings(QUIET)
        submit(store, "a")
        assert bell.rings()
        assert not theirs.rings(QUIET)


def test_a_schema_is_one_however_it_is_named(
    store: BatchRepository, bell: Bell, schema: str, engines: MakeEngine
) -> None:
    """Who finds the tables by the search path hears who names their schema, and the reverse."""
    by_path = engines(store.engine, pool_size=1)

    @event.listens_for(by_path, "connect")
    def set_path(connection: Any, _record: Any) -> None:
        connection.execute("SELECT set_config('search_path', quote_ident(%s), false)", (schema,))
        connection.commit()

    found, named = BatchRepository(by_path), BatchRepository(store.engine, schema=schema)
    for hearing, telling in ((found, named), (named, found)):
        with heard(hearing, bell):
            submit(telling, f"{telling.schema}"[:3])
            assert bell.rings()


def test_it_takes_no_place_in_the_pool(
    store: BatchRepository, bell: Bell, engines: MakeEngine
) -> None:
    """With a pool of one connection the store works while it listens."""
    one = engines(store.engine, pool_size=1, max_overflow=0, pool_timeout=1)
    small = BatchRepository(one)
    with heard(small, bell):
        assert one.pool.checkedout() == 0  # type: ignore[attr-defined]
        submit(small, "a")
        assert bell.rings()
        assert len(backends(store.engine)) == 1


def test_it_ends_with_its_context(store: BatchRepository, bell: Bell) -> None:
    """Afterwards there is neither its thread nor its connection, and leaving twice is fine."""
    subscription = store.subscribe(bell.ring)
    assert subscription is not None
    with subscription:
        names = [thread.name for thread in threading.enumerate()]
        assert names.count("batchmill-listen") == 1
    subscription.__exit__(None, None, None)
    assert "batchmill-listen" not in [thread.name for thread in threading.enumerate()]
    assert backends_gone(store.engine)
    submit(store, "a")
    bell.rings(0)
    assert not bell.rings(QUIET)


def test_it_may_be_left_at_once(store: BatchRepository, bell: Bell) -> None:
    """However early it is left, it leaves nothing."""
    for _ in range(20):
        subscription = store.subscribe(bell.ring)
        assert subscription is not None
        with subscription:
            pass
    gc.collect()
    assert backends_gone(store.engine)


def backends_gone(engine: Engine) -> bool:
    """Whether the server sees soon that a connection was closed."""
    waiting = threading.Event()
    for _ in range(200):
        if not backends(engine):
            return True
        waiting.wait(0.02)
    return False


def test_a_lost_connection_is_made_anew(
    store: BatchRepository, bell: Bell, caplog: pytest.LogCaptureFixture
) -> None:
    """It wakes once it listens again, since it may have missed something, and logs each once."""
    caplog.set_level(logging.INFO, "batchmill.store")
    with heard(store, bell):
        with store.engine.begin() as connection:
            connection.execute(text(f"SELECT pg_terminate_backend(pid) FROM ({BACKENDS}) AS old"))
        assert bell.rings()
        submit(store, "a")
        assert bell.rings()
    lost, back = (record.getMessage() for record in caplog.records)
    assert lost == "not listening for new work (OperationalError): polling"
    assert back == "listening for new work again"


def test_a_deaf_connection_is_given_up(
    store: BatchRepository, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One whose server went silent without a word is asked, and replaced when it doesn't answer."""
    monkeypatch.setattr(listening, "BEAT", 0.2)
    monkeypatch.setattr(listening, "ANSWER_WITHIN", 0.5)
    with heard(store, bell):
        assert not bell.rings(4 * listening.BEAT)  # it answers, and nothing is made anew
        (pid,) = backends(store.engine)
        os.kill(pid, signal.SIGSTOP)
        try:
            assert bell.rings()
            submit(store, "a")
            assert bell.rings()
        finally:
            os.kill(pid, signal.SIGCONT)


def test_a_connection_that_forgot_its_channel_is_given_up(
    postgres: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever answers without listening, a proxy on a new connection say, is no listener."""
    monkeypatch.setattr(listening, "BEAT", 0.05)
    listener = listening.Listener(postgres, None)
    try:
        listener._driver.execute("UNLISTEN *")
        with pytest.raises(ConnectionError):
            for _ in range(100):
                listener.heard(silent=not listener._asked)
                threading.Event().wait(0.02)
    finally:
        listener.close()


def test_behind_a_pool_it_says_once_that_it_hears_nothing(
    store: BatchRepository, bell: Bell, monkeypatch: pytest.MonkeyPatch, caplog
) -> None:
    """Where each connection forgets that it listens, one line says so, not one a connection."""
    monkeypatch.setattr(listening, "BEAT", 0.05)
    monkeypatch.setattr(listening, "FIRST_PAUSE", 0.01)
    connecting = listening.Listener.__init__

    def forgetful(self: listening.Listener, *args: Any) -> None:
        connecting(self, *args)
        self._driver.execute("UNLISTEN *")

    monkeypatch.setattr(listening.Listener, "__init__", forgetful)
    caplog.set_level(logging.INFO, "batchmill.store")
    with heard(store, bell):
        assert bell.rings()
        assert bell.rings()
    assert [record.getMessage() for record in caplog.records] == [
        "not listening for new work (ConnectionError): polling"
    ]


def test_a_database_that_is_away_is_waited_for(
    postgres: Engine, bell: Bell, monkeypatch: pytest.MonkeyPatch, caplog
) -> None:
    """It begins without the database, says so once, and listens as soon as that is there."""
    monkeypatch.setattr(listening, "FIRST_PAUSE", 0.01)
    away = threading.Event()
    away.set()
    connect = postgres.dialect.loaded_dbapi.connect

    def creator() -> object:
        if away.is_set():
            raise postgres.dialect.loaded_dbapi.OperationalError("no s3cret.host")
        args, named = postgres.dialect.create_connect_args(postgres.url)
        return connect(*args, **named)

    engine = create_engine("postgresql+psycopg://", creator=creator)
    store = BatchRepository(engine)
    subscription = store.subscribe(bell.ring)
    assert subscription is not None
    with subscription:
        assert not bell.rings(QUIET)
        away.clear()
        assert bell.rings()
        submit(store, "a")
        assert bell.rings()
    engine.dispose()
    assert [record.getMessage() for record in caplog.records] == [
        "not listening for new work (OperationalError): polling"
    ]


def test_it_ends_while_the_database_is_away(bell: Bell) -> None:
    """Leaving the context doesn't wait for a database that isn't there."""
    engine = create_store_engine("postgresql://localhost:1/nowhere")
    subscription = BatchRepository(engine).subscribe(bell.ring)
    assert subscription is not None
    with subscription:
        pass
    assert not bell.rings(0)


def test_without_tables_there_is_nothing_to_hear(
    postgres: Engine, bell: Bell, engines: MakeEngine
) -> None:
    """A database that isn't migrated says so when the context is entered, and leaves nothing."""
    nowhere = engines(postgres, connect_args={"options": "-csearch_path=nowhere"})
    subscription = BatchRepository(nowhere).subscribe(bell.ring)
    assert subscription is not None
    with pytest.raises(NotMigrated), subscription:
        pass


def test_whoever_is_woken_may_raise(store: BatchRepository, bell: Bell) -> None:
    """An error of the woken doesn't end the listening."""

    def ring() -> None:
        bell.ring()
        raise RuntimeError

    subscription = store.subscribe(ring)
    assert subscription is not None
    with subscription:
        assert bell.rings()
        for job_id in ("a", "b"):
            submit(store, job_id)
            assert bell.rings()


# Python 3.12 warns of a fork beside threads: they are what this is about.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_leaves_it_alone(store: BatchRepository, bell: Bell) -> None:
    """A child that leaves the context, and ends in order, takes nothing from its parent."""
    with heard(store, bell):
        before = backends(store.engine)
        child = os.fork()
        if child == 0:
            code = 1
            with suppress(BaseException):
                code = _leave_as_child(store)
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert not bell.rings(QUIET)
        submit(store, "a")
        assert bell.rings()
        assert backends(store.engine) == before


def _leave_as_child(store: BatchRepository) -> int:
    for each in gc.get_objects():
        if isinstance(each, listening.Subscription):
            each.__exit__(None, None, None)
        elif isinstance(each, listening.Listener):
            each.__dict__.clear()  # as when nothing holds it any more
    gc.collect()
    return 0


def test_what_it_is_given_is_checked(store: BatchRepository) -> None:
    """A queue that can't be one is refused by its name."""
    for queue in ("", "x" * 256, "a\x00", 5):
        with pytest.raises(InvalidInput, match="^queue: "):
            store.subscribe(print, queue=queue)  # type: ignore[arg-type]


@pytest.mark.mariadb
def test_mariadb_has_no_push(maria: Engine) -> None:
    """A runner on MariaDB polls."""
    assert BatchRepository(maria).subscribe(print, queue="default") is None


SUBMIT = """
runner = Runner(store, quick, resolve_caller=resolve)
say("ready")
while listen():
    say(runner.submit(User("ann"), [f"u{time.time_ns()}"]).job_id)
engine.dispose()
"""


def test_a_runner_starts_at_once_what_another_process_submitted(store: BatchRepository) -> None:
    """A runner that polls once an hour fetches what another process submits, within seconds."""
    fetched = Bell()

    def fetch(_context: object, _caller: object, target: object) -> Result:
        fetched.ring()
        return Result(str(target))

    runner = Runner(
        store,
        fetch,
        RunnerConfig(poll_interval=timedelta(hours=1)),
        resolve_caller=lambda name, _: User(name),
    )
    url = store.engine.url.render_as_string(hide_password=False)
    with runner, script(url, SUBMIT) as other:
        runner.drain(PATIENCE)  # it has looked, and found nothing
        hears(other, "ready")
        for _ in range(3):
            tell(other, "another")
            assert fetched.rings(5.0)
            assert other.stdout is not None
            assert runner.wait(other.stdout.readline().strip(), PATIENCE).status == "done"
        tell(other)
        assert other.wait(PATIENCE) == 0
