"""The rows of the total that are locks: who waits for whom at the byte budget and at the caps."""

from __future__ import annotations

import threading
import time

from sqlalchemy import text

from tests.store.support import done, exchange, finish, submit
from tests.support.fixtures import on_servers

EVICTING = text("SELECT shard FROM batch_total WHERE shard = -2 FOR UPDATE")
"""The lock of whoever evicts."""
BUDGET = 50


@on_servers
def test_an_exchange_stores_before_it_waits_for_an_eviction(database, store):
    """It leaves its own step to later, commits what it stored, and evicts after the other one."""
    finish(store, "old", '"' + "x" * 100 + '"')
    submit(store, "new")
    (claim,) = exchange(store).claims
    answers = []

    def hand_in():
        answers.append(exchange(store, [done(claim)], want=0, max_bytes=BUDGET))

    late = threading.Thread(target=hand_in)
    with database.engine().begin() as other:
        other.execute(EVICTING)
        late.start()
        deadline = time.monotonic() + 20
        while store.get_job("new").status != "done" and time.monotonic() < deadline:
            time.sleep(0.01)
        assert store.get_job("new").status == "done"
        assert store.get_job("old") is not None
    late.join()
    assert answers[0].stored == [claim.token]
    assert (store.get_job("old"), store.nbytes()) == (None, 2)


@on_servers
def test_a_submit_waits_for_nobody_who_counts_bytes(database, store):
    """Only another submit holds it up: the caps have a lock of their own."""
    busy = text("SELECT shard FROM batch_total WHERE shard <> -1 FOR UPDATE")
    submitting = threading.Thread(target=submit, args=(store, "a"))
    with database.engine().begin() as other:
        other.execute(busy)
        submitting.start()
        submitting.join(20)
        waited = submitting.is_alive()
    submitting.join()
    assert not waited
