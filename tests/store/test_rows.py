"""What stands in the tables, by raw SQL, where no call of the store shows it."""

from __future__ import annotations

import pytest

from batchmill.errors import StoreError
from batchmill.store import BatchRepository
from tests.store.support import done, exchange, submit


def test_a_lost_runner_is_forgotten_after_the_last_of_its_jobs(store: BatchRepository, raw) -> None:
    """From the moment in which it counts as lost, but not while a local job of it is left."""
    submit(store, "a", home="r")
    submit(store, "b", home="r")
    at = {"hold_for": 60, "max_attempts": 3, "limit": 1}
    assert [each.job_id for each in store.release_lost(now=160, **at).settled] == ["a"]
    assert raw("SELECT id FROM batch_runner") == [("r",)]
    assert [each.job_id for each in store.release_lost(now=160, **at).settled] == ["b"]
    assert raw("SELECT id FROM batch_runner") == []


@pytest.mark.parametrize(
    ("stolen", "claiming"), [("token = 'other'", False), ("holder = 'x'", True)]
)
def test_a_turn_that_changed_hands_inside_an_exchange_stores_nothing(
    store: BatchRepository, raw, stolen: str, claiming: bool
) -> None:
    """Every turn is written behind its fence, and one that is another's by then undoes it all."""
    submit(store, "a", 2)
    outcomes = [] if claiming else [done(claim) for claim in exchange(store).claims]
    before = raw("SELECT * FROM batch_target"), raw("SELECT * FROM batch_turn")
    raw(
        "CREATE TRIGGER thief AFTER UPDATE ON batch_target "
        f"BEGIN UPDATE batch_turn SET {stolen}; END"
    )
    with pytest.raises(StoreError, match="^a turn changed hands inside its own transaction; noth"):
        exchange(store, outcomes, want=int(claiming))
    assert (raw("SELECT * FROM batch_target"), raw("SELECT * FROM batch_turn")) == before
    assert store.nbytes() == 0
