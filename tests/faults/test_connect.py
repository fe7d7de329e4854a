"""A database that can't be reached for a while, or not be set up."""

from __future__ import annotations

import pytest
from sqlalchemy import event
from sqlalchemy.pool import NullPool

from batchmill.errors import StoreUnavailable
from batchmill.store import BatchRepository
from tests.faults.operations import WRITES, prepared
from tests.faults.test_runner import JOBS, Work, check_ended, runner_on, submitted
from tests.runner.helpers import PATIENCE, until
from tests.support.fixtures import on_sqlite

pytestmark = on_sqlite


class Door:
    """Connecting to an engine's database, which a test shuts and opens again."""

    def __init__(self, database, engine) -> None:
        self.shut, self.met = False, 0
        self._database = database
        event.listen(engine, "do_connect", self._connecting)
        event.listen(engine, "connect", self._connected, insert=True)
        self.at_setup = False

    def _connecting(self, *_: object) -> None:
        if self.shut and not self.at_setup:
            self._refuse()

    def _connected(self, *_: object) -> None:
        if self.shut and self.at_setup:
            self._refuse()

    def _refuse(self) -> None:
        self.met += 1
        raise self._database.fault("input/output")


@pytest.fixture
def engine(database):
    """An engine that connects for every call."""
    return database.engine(poolclass=NullPool)


@pytest.fixture
def door(database, engine) -> Door:
    """Its door, open."""
    return Door(database, engine)


@pytest.mark.parametrize("at_setup", [False, True], ids=["connecting", "setting up"])
@pytest.mark.parametrize("name", WRITES)
def test_a_write_without_a_connection(database, engine, door, name, at_setup):
    """StoreUnavailable and no trace; once it can connect, all of it is done."""
    store = BatchRepository(engine)
    call = prepared(store, name)
    before, door.at_setup, door.shut = database.dump(), at_setup, True
    with pytest.raises(StoreUnavailable, match="can't be opened or read"):
        call(store)
    assert database.dump() == before
    door.shut = False
    call(store)
    assert database.dump() != before


def test_a_runner_without_a_connection_for_a_while(database, engine, door, monkeypatch):
    """It lives, keeps what was fetched, and finishes when it can connect again."""
    from batchmill.runner import pauses

    monkeypatch.setattr(pauses, "FIRST_PAUSE", 0.002)
    monkeypatch.setattr(pauses, "LONGEST_PAUSE", 0.01)
    database.log_finishes()
    work = Work()
    runner = runner_on(BatchRepository(engine), work)
    jobs = submitted(runner)
    assert len(jobs) == JOBS
    with runner:
        assert work.begun.wait(PATIENCE)
        door.shut = True
        work.go_on.set()
        until(lambda: door.met >= 5)
        door.shut = False
        check_ended(database, runner, jobs, work)
