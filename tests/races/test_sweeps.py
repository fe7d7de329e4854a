"""A sweep between its look for expired jobs and its locks on them."""

from __future__ import annotations

import pytest

from batchmill.store.transactions import Compiler
from tests.store.support import HOUR, exchange, submit
from tests.support.fixtures import on_servers

LATE = 100 + 7200
"""When the lease of what was last used at second 100 has run out."""


@pytest.fixture
def before(monkeypatch):
    """Makes a call once, just before a statement of this name runs."""

    def arrange(name, act):
        waiting, compiled = [act], Compiler.compiled

        def spy(self, build, variant):
            if build.__name__ == name and waiting:
                waiting.pop()()
            return compiled(self, build, variant)

        monkeypatch.setattr(Compiler, "compiled", spy)

    return arrange


@on_servers
def test_a_job_used_meanwhile_stays(database, store, before):
    """A lease that was renewed after the look keeps its job; the others go."""
    submit(store, "a")
    submit(store, "b")
    before("lock_expired", lambda: database.store().touch_job("a", now=LATE))
    assert store.sweep(now=LATE, ttl=HOUR) == 1
    assert [job.id for job in store.list_jobs()] == ["a"]


@on_servers
def test_a_job_claimed_meanwhile_stays(database, store, before):
    """A hold that was taken after the look keeps its job, whatever its runner's clock."""
    submit(store, "a")
    submit(store, "b")
    before("lock_free_turns", lambda: exchange(database.store(), hold_for=10_000))
    assert store.sweep(now=LATE, ttl=HOUR) == 1
    assert [job.id for job in store.list_jobs()] == ["a"]
