"""Caps and idempotency are exact, however many processes submit at once."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.hosts.crowd import submit_at_once
from tests.store.workers import in_processes
from tests.support.invariants import broken


@pytest.mark.parametrize(
    "count",
    [6, pytest.param(20, marks=[pytest.mark.soak, pytest.mark.timeout(240)])],
    ids=["short", "full"],
)
def test_case_9_processes_submit_at_once(database, count):
    """cases.md 9 and 9b: one job a caller and key, caps exact, a replay where they are full."""
    answers = in_processes(count, submit_at_once, database.url)
    same, callers, capped, replayed, each = zip(*answers, strict=True)
    (made,) = {answer.split()[1] for answer in same}
    assert Counter(answer.split()[0] for answer in same) == {"made": 1, "reused": count - 1}
    of_two = [{answer.split()[1] for answer in callers[number::2]} for number in range(2)]
    assert [len(ids) for ids in of_two] == [1, 1]
    assert len({made} | of_two[0] | of_two[1]) == 3
    kinds = Counter(answer.split()[0] for answer in capped)
    assert kinds == {"made": 3, "Busy": count - 3}
    assert set(replayed) == {f"reused {made}"}
    kinds = Counter(answer.split()[0] for answer in each)
    assert kinds == {"made": 2, "CallerBusy": count - 2}
    assert database.query("SELECT count(*) FROM batch_job") == [(8,)]
    assert database.query("SELECT count(*) FROM batch_target") == [(40,)]
    assert broken(database) == []
