"""What a disk does: no room, no permission, damage; with every write of a store."""

from __future__ import annotations

import pytest

from batchmill.errors import StoreBusy, StoreFull, StoreUnavailable
from batchmill.store import transactions
from tests.faults.operations import WRITES, prepared
from tests.store.support import finish, submit
from tests.support.fixtures import on_servers_for_long, on_sqlite
from tests.support.invariants import broken

EVERY_WRITE = pytest.mark.parametrize("name", WRITES)
PAGES = 60
"""More than any of the writes adds."""


@on_sqlite
@EVERY_WRITE
def test_a_full_disk(database, name):
    """With room for 0, 1, 2 … more pages: StoreFull and no trace, until it is done as a whole."""
    store = database.store()
    call = prepared(store, name)
    start, before = database.snapshot(), database.dump()
    steps, tight = WRITES[name].steps, database.store(pool_size=1, max_overflow=0)
    for spare in range(PAGES):
        database.limit_room(tight.engine, spare)
        try:
            call(tight)
            break
        except StoreFull:
            pass
        assert steps or database.dump() == before
        assert broken(database, submitted=False) == []
        assert tight.get_job("kept") is not None
        database.restore(start)
    else:
        pytest.fail("it was never done")


@on_sqlite
def test_sweep_and_evict_make_room_on_a_full_disk(database):
    """cases.md S22: in a file that can't grow, submits fail, sweeps help, and then they work."""
    store = database.store()
    for number in range(5):
        finish(store, f"old-{number}", '"' + "x" * 20_000 + '"')
    tight = database.store(pool_size=1, max_overflow=0)
    database.limit_room(tight.engine, 0)
    with pytest.raises(StoreFull):
        submit(tight, "new", 900)
    assert len(tight.get_targets("old-4")[0].result) == 20_002
    assert tight.evict_oldest(max_bytes=50_000) == 3
    assert submit(tight, "new", 900).job_id == "new"
    assert broken(database) == []


@on_servers_for_long
@EVERY_WRITE
def test_a_file_that_can_not_be_written_to(database, name):
    """StoreUnavailable that names permissions, and no trace; once it can be, all of it is done."""
    store = database.store(pool_size=1, max_overflow=0)
    call = prepared(store, name)
    before = database.dump()
    database.forbid_writes(store.engine, True)
    with pytest.raises(StoreUnavailable, match="can't be written to; check the .*permissions"):
        call(store)
    assert database.dump() == before
    assert store.get_job("kept") is not None
    database.forbid_writes(store.engine, False)
    call(store)
    assert database.dump() != before


def test_a_lock_that_lasts(database, monkeypatch):
    """Every write says that the database is busy, after a bounded time, and leaves no trace."""
    monkeypatch.setattr(transactions, "PATIENCE", 0.01)
    store = database.store()
    calls, empty = {}, database.snapshot()
    for name in ("submit_job", "cancel_job", "exchange of a result", "sweep", "hold"):
        database.restore(empty)
        calls[name] = (prepared(store, name), database.snapshot())
    impatient = database.store(**database.impatient)
    for call, start in calls.values():
        database.restore(start)
        before = database.dump()
        with database.locked(), pytest.raises(StoreBusy, match="locked by another writer"):
            call(impatient)
        assert database.dump() == before
        call(impatient)
