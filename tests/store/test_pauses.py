"""The pauses between the steps of a long sweep or eviction, in which other writers get in."""

from __future__ import annotations

import pytest

from batchmill.store import transactions
from batchmill.store.transactions import LONGEST_LOOK, OwnTransactions
from tests.store.support import HOUR, submit

LATE = 100 + 7200
"""When the lease of what was last used at second 100 has run out."""


@pytest.fixture
def slept(monkeypatch) -> list[float]:
    """How long each pause was to take; none of them does."""
    pauses: list[float] = []
    monkeypatch.setattr(transactions.time, "sleep", pauses.append)
    return pauses


def test_a_sweep_pauses_between_its_steps(store, slept) -> None:
    """Three steps have two pauses, none of them longer than a waiting writer needs."""
    for number in range(60):
        submit(store, f"j{number}")
    assert store.sweep(now=LATE, ttl=HOUR) == 60
    assert len(slept) == 2
    assert all(0 < pause <= LONGEST_LOOK for pause in slept)


def test_one_step_has_no_pause(store, slept) -> None:
    """What a submit or an exchange removes by the way holds nobody up."""
    submit(store, "a")
    assert store.sweep(now=LATE, ttl=HOUR) == 1
    assert slept == []


def test_a_step_that_waited_long_makes_no_long_pause(store, slept) -> None:
    """A step counts with all that it waited for; the pause after it is bounded all the same."""
    transactions_of_store = store._transactions
    assert isinstance(transactions_of_store, OwnTransactions)
    transactions_of_store.let_others_in(30.0)
    assert slept == [LONGEST_LOOK]
