"""Hosts of their own, one of which is cut off: network namespaces, made here."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from batchmill.store import BatchRepository
from tests.hosts.namespaces import Host, network
from tests.hosts.processes import Process
from tests.hosts.servers import EACH, Server, running
from tests.hosts.support import runner_on, submitted
from tests.runner.helpers import until
from tests.support.database import Database
from tests.support.invariants import broken
from tests.support.tables import print_later

HOLD = 2.0


class Site:
    """A server on the first host; runners go on the others."""

    def __init__(self, server: Server, hosts: list[Host], folder: Path) -> None:
        self.server, self.folder = server, folder
        self.processes: list[Process] = []
        self.first, self.second = hosts[1:]
        self.database: Database = server.database()
        self.database.log_finishes()
        self.store: BatchRepository = self.database.store()

    def runner(self, host: Host, name: str, **given: object) -> Process:
        """A runner on a host, which runs."""
        options = {"hold_for": HOLD, "fetch": 0.02, "loud": True, "inside": host.inside}
        process = Process(self.folder, name, self.database.url, **(options | given))
        self.processes.append(process)
        process.hears("ready")
        return process

    def close(self) -> None:
        """Leave nothing behind."""
        for process in self.processes:
            process.end()
        for host in (self.first, self.second):
            host.plug(in_=True)
        self.database.close()


@pytest.fixture
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """Three hosts."""
    kind = getattr(request, "param", "postgresql")
    with ExitStack() as stack:
        hosts = stack.enter_context(network(3))
        given = {"host": hosts[0].address, "inside": hosts[0].inside}
        server = stack.enter_context(running(kind, **given))
        made = Site(server, hosts, tmp_path)
        stack.callback(made.close)
        yield made


on_each = pytest.mark.parametrize("site", EACH, indirect=True)


def test_a_host_that_is_cut_off_in_the_middle_of_a_fetch(site):
    """Its target is taken over, and what it brings when it is back is refused."""
    jobs = submitted(runner_on(site.store, print), 6, 5)
    first = site.runner(site.first, "first", fetch=None)
    _, job, idx, attempt = first.hears("fetch").split()
    second = site.runner(site.second, "second")
    site.first.plug(in_=False)
    cut = time.monotonic()
    second.hears(f"fetch {job} {idx} 2")
    taken_over = time.monotonic() - cut
    until(lambda: site.database.query("SELECT count(*) FROM batch_turn") == [(0,)])
    first.tell()
    site.first.plug(in_=True)
    until(lambda: "outcome refused, its hold was lost" in first.logged())
    print_later("a host cut off", [f"its target was taken over after {taken_over:.2f} s"])
    assert attempt == "1"
    assert taken_over < HOLD + 1.0
    assert {site.store.get_job(each).status for each in jobs} == {"done"}
    stored = site.store.get_targets(job)[int(idx)]
    assert stored.result == '{"content":"second","meta":{"attempt":2}}'
    assert site.database.query("SELECT count(*) FROM finish_log") == [(30,)]
    assert broken(site.database, logged=True) == []


@on_each
@pytest.mark.soak
@pytest.mark.timeout(150)
def test_a_cut_is_noticed_in_bounded_time(site):
    """Here within about 10 s, however the link is cut; afterwards all is well by itself."""
    (job,) = submitted(runner_on(site.store, print), 1, 4)
    runner = site.runner(site.first, "first", fetch=None, hold_for=60)
    runner.hears("fetch")
    runner.tell()
    runner.hears("fetch", times=2)
    site.first.isolate(alone=True)
    runner.tell()
    cut = time.monotonic()
    until(lambda: "store error" in runner.logged(), within=30)
    noticed = time.monotonic() - cut
    site.first.isolate(alone=False)
    plugged = time.monotonic()
    until(lambda: "answers again" in runner.logged(), within=30)
    back = time.monotonic() - plugged
    for _ in range(2):
        runner.tell()
    until(lambda: site.store.get_job(job).status == "done")
    print_later(
        f"a cut link, {site.database.kind}",
        [f"noticed after {noticed:.1f} s, back {back:.1f} s after the link was"],
    )
    assert noticed < 20
    assert back < 8
    assert site.database.query("SELECT sum(lost) FROM batch_target") == [(0,)]
    assert broken(site.database, logged=True) == []
