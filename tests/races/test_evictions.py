"""An eviction under way, and an exchange that is over the byte budget as well."""

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
