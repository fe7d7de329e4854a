"""What the contract leaves to a store, as the SQL store's exchange does it."""

from __future__ import annotations

from batchmill.records import Outcome
from batchmill.store import BatchRepository
from tests.store.support import done, exchange, submit


def test_what_was_put_back_is_handed_out_by_the_same_exchange(store: BatchRepository) -> None:
    """An idle slot takes it at once, instead of coming back for it in a second exchange."""
    submit(store, "a")
    (claim,) = exchange(store).claims
    back = Outcome(claim.job_id, claim.idx, claim.token, "put_back")
    answer = exchange(store, [back], want=3)
    assert [(each.job_id, each.attempt) for each in answer.claims] == [("a", 2)]
    assert exchange(store).claims == []
    assert exchange(store, [done(answer.claims[0])]).stored == [answer.claims[0].token]
