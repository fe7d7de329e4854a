"""What stands in the tables, by raw SQL, where no call of the store shows it."""

from __future__ import annotations

from batchmill.store import BatchRepository
from tests.store.support import submit


def test_a_lost_runner_is_forgotten_after_the_last_of_its_jobs(store: BatchRepository, raw) -> None:
    """From the moment in which it counts as lost, but not while a local job of it is left."""
    submit(store, "a", home="r")
    submit(store, "b", home="r")
    at = {"hold_for": 60, "max_attempts": 3, "limit": 1}
    assert [each.job_id for each in store.release_lost(now=160, **at).settled] == ["a"]
    assert raw("SELECT id FROM batch_runner") == [("r",)]
    assert [each.job_id for each in store.release_lost(now=160, **at).settled] == ["b"]
    assert raw("SELECT id FROM batch_runner") == []
