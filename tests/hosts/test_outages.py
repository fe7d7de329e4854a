"""A runner outlives its database: lost connections, restarts, failover."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from time import monotonic, sleep

import pytest

from batchmill.errors import StoreUnavailable
from tests.hosts.proxy import Proxy
from tests.hosts.support import UP_AGAIN, Gate, at, forget, runner_on, submitted
from tests.runner.helpers import PATIENCE, User, until
from tests.support.invariants import broken
from tests.support.servers import free_port


@pytest.fixture
def proxy(server):
    """A proxy before the server."""
    with Proxy(server.host, server.port) as opened:
        yield opened


def messages(caplog, words: str) -> list[str]:
    """What the runners logged with these words in it."""
    found = [each.getMessage() for each in caplog.records if each.name == "batchmill.runner"]
    return [message for message in found if words in message]


def test_a_restart_in_the_middle_of_fetches(server, database, caplog):
    """What was in flight is stored when the server is back; nothing is fetched twice."""
    caplog.set_level(logging.INFO)
    gate = Gate(shut=True)
    with runner_on(database.store(), gate) as runner:
        jobs = submitted(runner, 4, 5)
        gate.wait_for(4)
        server.kill()
        gate.open()
        until(lambda: messages(caplog, "store error"))
        sleep(1)  # some more tries
        server.start()
        assert {runner.wait(job, UP_AGAIN).status for job in jobs} == {"done"}
    assert set(gate.fetched.values()) == {1}
    assert len(gate.fetched) == 20
    assert messages(caplog, "refused") == []
    forget(database)
    assert broken(database, logged=True) == []


def test_an_outage_is_logged_once(server, database, caplog):
    """However many tries of however many services fail, and once more when it is over."""
    caplog.set_level(logging.INFO)
    store, tries = database.store(), []
    exchange = store.exchange
    store.exchange = lambda *args, **named: (tries.append(1), exchange(*args, **named))[1]
    gate = Gate(shut=True)
    with runner_on(store, gate, hold_for=timedelta(seconds=1)) as runner:
        (job,) = submitted(runner, 1, 2)
        gate.wait_for(1)
        server.kill()
        tries.clear()
        gate.open()
        until(lambda: len(tries) >= 4)
        server.start()
        assert runner.wait(job, UP_AGAIN).status == "done"
        until(lambda: messages(caplog, "answers again"))
    errors = messages(caplog, "store error")
    assert len(errors) == 1
    assert "StoreUnavailable" in errors[0]
    assert len(messages(caplog, "the store answers again, after ")) == 1
    assert str(server.port) not in caplog.text


def test_the_application_during_an_outage(server, database):
    """submit and status answer StoreUnavailable at once, without an address; later they work."""
    with runner_on(database.store(), Gate()) as runner:
        (job,) = submitted(runner, 1, 1)
        assert runner.wait(job, PATIENCE).status == "done"
        server.kill()
        for call in (lambda: runner.submit(User("u"), ["x"]), lambda: runner.status(job)):
            begun = monotonic()
            with pytest.raises(StoreUnavailable) as raised:
                call()
            assert monotonic() - begun < 2
            assert str(raised.value).startswith("the database can't be opened or read")
        server.start()
        assert runner.status(job).job.status == "done"
        other = runner.submit(User("u"), ["x"])
        assert runner.wait(other.job_id, PATIENCE).status == "done"


def test_a_wait_sits_an_outage_out(server, database):
    """Who waited before goes on waiting, and gets the end of the job."""
    gate, store, looks = Gate(shut=True), database.store(), []
    get_job = store.get_job
    store.get_job = lambda *args: (get_job(*args), looks.append(threading.current_thread()))[0]
    with runner_on(store, gate) as runner, ThreadPoolExecutor(1) as pool:
        (job,) = submitted(runner, 1, 2)
        gate.wait_for(1)
        waits = pool.submit(runner.wait, job, UP_AGAIN)
        until(lambda: any(thread is not threading.main_thread() for thread in looks))
        changes = runner.watch(job)
        assert next(changes).status == "running"
        server.kill()
        with pytest.raises(StoreUnavailable):
            runner.wait(job, PATIENCE)
        server.start()
        gate.open()
        assert waits.result().status == "done"
        assert [each.status for each in changes][-1] == "done"


def test_stale_connections_are_no_error(server, database):
    """After a restart that nobody saw, a pool full of lost connections fails no call."""
    store = database.store(pool_size=5, max_overflow=0)
    runner = runner_on(store, Gate())
    (job,) = submitted(runner, 1, 1)
    together = threading.Barrier(5)

    def connected() -> None:
        with store.engine.connect():
            together.wait(PATIENCE)

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(lambda _: connected(), range(5)))
        assert store.engine.pool.checkedin() == 5
        server.kill()
        server.start()
        assert [each.id for each in pool.map(lambda _: runner.progress(job), range(8))] == [job] * 8
    server.kill()
    server.start()
    assert not runner.submit(User("u"), ["x"]).reused
    server.kill()
    server.start()
    assert not store.hold("r", [], now=store.now(), hold_for=1).lost


def test_connections_that_are_cut_again_and_again(database, proxy, caplog):
    """Whatever they were cut in: every target is stored once, every job is done."""
    store = database.store(url=at(database.url, proxy.port))
    gate, ended = Gate(), threading.Event()
    hold_for = timedelta(seconds=1)
    with runner_on(store, gate, hold_for=hold_for, max_attempts=1000) as runner:
        jobs = submitted(runner, 10, 30)

        def cut() -> None:
            while not ended.wait(0.15):
                proxy.cut()
                proxy.open()

        cutting = threading.Thread(target=cut)
        cutting.start()
        until(lambda: proxy.accepted >= 40)
        ended.set()
        cutting.join()
        assert {runner.wait(job, UP_AGAIN).status for job in jobs} == {"done"}
    assert broken(database, logged=True) == []
    assert database.query("SELECT count(*) FROM finish_log") == [(300,)]


def test_a_failover(server, database, proxy):
    """The same name leads to another server, which has what was committed."""
    gate = Gate(shut=True)
    with runner_on(database.store(url=at(database.url, proxy.port)), gate) as runner:
        jobs = submitted(runner, 4, 5)
        gate.wait_for(4)
        server.kill()
        proxy.cut()
        gate.open()
        before, server.port = server.port, free_port()
        server.start()
        proxy.lead_to(server.host, server.port)
        proxy.open()
        assert {runner.wait(job, UP_AGAIN).status for job in jobs} == {"done"}
    assert set(gate.fetched.values()) == {1}
    server.kill()
    server.port = before
    server.start()
    forget(database)
    assert broken(database, logged=True) == []


def test_a_start_without_the_database(server, database, caplog):
    """A runner that starts during an outage takes its work up when it is over."""
    store, gate = database.store(), Gate()
    (job,) = submitted(runner_on(store, gate), 1, 3)
    server.kill()
    with runner_on(store, gate) as runner:
        assert len(messages(caplog, "store error")) == 1
        server.start()
        assert runner.wait(job, UP_AGAIN).status == "done"


def test_an_outage_longer_than_a_hold(server, database):
    """Runners that were all away lose nothing to each other: not a local job, not a fetch."""
    gate = Gate(shut=True)
    given = {"workers": 1, "hold_for": timedelta(seconds=1)}
    local = runner_on(database.store(), gate, resolve_caller=None, **given)
    with local, runner_on(database.store(), gate, **given) as shared:
        jobs = submitted(local, 1, 2, "local") + submitted(shared, 1, 2, "shared")
        gate.wait_for(2)
        server.kill()
        sleep(2)
        server.start()
        sleep(2.5)  # both have looked for what lost runners left, again and again
        gate.open()
        assert [local.wait(job, UP_AGAIN).status for job in jobs] == ["done", "done"]
    assert set(gate.fetched.values()) == {1}
    forget(database)
    assert database.query("SELECT sum(lost) FROM batch_target") == [(0,)]


def test_a_connection_that_hangs_holds_up_no_close(database, proxy, caplog):
    """close(timeout) returns about a second after it, while the store answers nothing."""
    gate, store = Gate(shut=True), database.store(url=at(database.url, proxy.port))
    runner = runner_on(store, gate).start()
    submitted(runner, 1, 2)
    gate.wait_for(1)
    proxy.stall(stalled=True)
    gate.open()
    begun = monotonic()
    runner.close(timeout=1)
    assert monotonic() - begun < 3
    assert messages(caplog, "its store doesn't answer; closed")
    proxy.cut()
    until(lambda: messages(caplog, "an outcome could not be stored"))
    names = f"{runner.runner_id}-"
    until(lambda: not any(each.name.startswith(names) for each in threading.enumerate()))
