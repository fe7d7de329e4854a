"""A submit whose key is answered by a job that goes at that very moment."""

from __future__ import annotations

import pytest

from tests.races.test_sweeps import before
from tests.store.support import done, exchange, submit

__all__ = ["before"]


@pytest.mark.parametrize("make_database", ["postgresql"], indirect=True)
def test_a_job_that_is_evicted_meanwhile_answers_no_key(database, store, before) -> None:
    """The submit stores its own job; on the other databases the look keeps the job from going."""
    submit(store, "a", idem_key="k")
    (claim,) = exchange(store).claims
    exchange(store, [done(claim)], want=0)
    before("touch_job", lambda: database.store().evict_oldest(max_bytes=0))
    admission = submit(store, "b", idem_key="k")
    assert (admission.job_id, admission.reused) == ("b", False)
    assert [job.id for job in store.list_jobs()] == ["b"]
