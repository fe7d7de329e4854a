"""Outcomes that meet: the same target twice, a cancel, a sweep, a release, a renewal."""

from __future__ import annotations

import pytest

from batchmill.errors import InvalidTransition, TargetNotFound
from batchmill.records import Outcome, Settled
from tests.store.support import HOUR, done, exchange, job, submit, targets
from tests.support.interleave import meet
from tests.support.invariants import broken

LATE = 100 + 3600
"""When the lease of what was last used at second 100 has run out, and every hold on it."""


@pytest.fixture
def claim(store):
    """The only target of job a, in flight."""
    submit(store, "a")
    return exchange(store).claims[0]


def storing(outcome: Outcome, **given: object):
    """Hands an outcome in and claims nothing."""
    return lambda store: exchange(store, [outcome], want=0, **given)


def cancelling(store):
    """Cancels job a."""
    return store.cancel_job("a", now=100)


def sweeping(store):
    """Sweeps at a time at which the lease of job a has run out, unless it was renewed."""
    return store.sweep(now=LATE, ttl=HOUR)


def releasing(store):
    """Releases what was lost, at a time at which the hold on job a has lapsed."""
    return store.release_lost(now=LATE, hold_for=60, max_attempts=3, limit=10)


def rows(database) -> list[tuple]:
    """The target of job a, its counters and its status."""
    return database.query(
        "SELECT j.status, j.targets_done, j.nbytes, t.status, t.result FROM batch_job AS j"
        " LEFT JOIN batch_target AS t ON t.job_id = j.id WHERE j.id = 'a'"
    )


def test_the_same_target_finished_twice(database, claim):
    """The second outcome of one token waits, and is refused; the first one's result stands."""
    met = meet(database, storing(done(claim, '"first"')), storing(done(claim, '"second"')))
    assert met.lost()
    assert met.first.stored == [claim.token]
    assert met.second.refused == [claim.token]
    assert not met.second.settled
    assert rows(database) == [("done", 1, 7, "done", '"first"')]


def test_a_target_written_twice_by_hand_counts_once(database, store):
    """The second write waits and replaces the result; targets_done rose by 1 (cases.md 10)."""
    store.create_job(job("a", targets_total=1))
    store.put_targets("a", targets(1))

    def writing(status: str, result: str | None):
        return lambda s: s.update_target("a", 0, now=100, status=status, result=result)

    met = meet(database, writing("done", '"first"'), writing("failed", None))
    assert met.waited
    assert rows(database) == [("queued", 1, 0, "failed", None)]
    assert broken(database, submitted=False) == []


def test_a_write_by_hand_loses_against_a_claim(database, store):
    """update_target waits for a claim of the same target, and leaves it to its runner."""
    submit(store, "a")
    met = meet(database, exchange, lambda s: s.update_target("a", 0, now=100, status="failed"))
    assert met.lost()
    assert isinstance(met.second, InvalidTransition)


def test_one_target_is_claimed_once(database, store):
    """The second runner waits for the first one's claim, or skips the job, and gets none."""
    submit(store, "a", 3)
    met = meet(database, exchange, lambda s: exchange(s, runner_id="other"))
    assert met.lost(skips=True)
    assert [claim.idx for claim in met.first.claims] == [0]
    assert not met.second.claims


def test_a_cancel_meets_the_last_store(database, claim):
    """A cancel that waits for the job's last target comes too late: None, and it stays done.

    cases.md 8.
    """
    met = meet(database, storing(done(claim)), cancelling)
    assert met.lost()
    assert met.first.settled == [Settled("a", "done", 100)]
    assert met.second is None
    assert rows(database)[0][0] == "done"


def test_the_last_store_meets_a_cancel(database, claim):
    """The last target waits for a cancel: it is stored, and the job stays cancelled (cases.md 8).

    No second terminal status is told.
    """
    met = meet(database, cancelling, storing(done(claim, '"x"')))
    assert met.waited
    assert met.first == Settled("a", "cancelled", 100)
    assert met.second.stored == [claim.token]
    assert not met.second.settled
    assert rows(database) == [("cancelled", 1, 3, "done", '"x"')]
    assert broken(database) == []


def test_two_cancels_end_a_job_once(database, claim):
    """The second waits and answers None."""
    met = meet(database, cancelling, cancelling)
    assert met.lost()
    assert (met.first.status, met.second) == ("cancelled", None)


def test_a_sweep_meets_a_store(database, claim):
    """A sweep deletes nothing of a job whose outcome is being stored, nor when its lease is new."""
    met = meet(database, storing(done(claim), now=LATE), sweeping)
    assert met.lost(skips=True)
    assert met.second == 0
    assert rows(database)[0][0] == "done"


def test_a_store_meets_a_sweep(database, claim):
    """An outcome that waits for a sweep of its job is refused, and leaves no row behind."""
    met = meet(database, sweeping, storing(done(claim), now=LATE))
    assert met.lost()
    assert met.first == 1
    assert met.second.refused == [claim.token]
    assert rows(database) == []
    assert broken(database) == []


def test_two_sweeps_count_each_job_once(database, claim):
    """The second waits or skips the job, and finds nothing."""
    met = meet(database, sweeping, sweeping)
    assert met.lost(skips=True)
    assert (met.first, met.second) == (1, 0)


def test_a_write_by_hand_meets_a_sweep(database, store):
    """A target of a job that is gone by then is not found."""
    submit(store, "a")
    met = meet(database, sweeping, lambda s: s.update_target("a", 0, now=LATE, status="done"))
    assert met.lost()
    assert isinstance(met.second, TargetNotFound)


def test_a_release_meets_a_renewal(database, claim):
    """A release that meets a renewal of the hold leaves the target with its runner."""

    def renewing(store):
        return store.hold("r", [claim.token], now=LATE - 1, hold_for=60)

    met = meet(database, renewing, releasing)
    assert met.waited or database.row_locks
    assert met.second.put_back == 0
    assert not met.first.lost
    assert [row[3] for row in rows(database)] == ["running"]


def test_a_renewal_meets_a_release(database, claim):
    """A renewal that waits for the release of its hold is told that it is lost."""

    def renewing(store):
        return store.hold("r", [claim.token], now=LATE, hold_for=60)

    met = meet(database, releasing, renewing)
    assert met.waited
    assert met.first.put_back == 1
    assert met.second.lost == [claim.token]
    assert [row[3] for row in rows(database)] == ["pending"]


def test_an_outcome_meets_a_release(database, claim):
    """An outcome that waits for the release of its hold is refused (cases.md S16)."""
    met = meet(database, releasing, storing(done(claim), now=LATE))
    assert met.lost()
    assert met.second.refused == [claim.token]
    assert rows(database) == [("running", 0, 0, "pending", None)]


def test_a_claim_goes_past_another_runners(database, store):
    """Where rows are locked, a runner takes the next job while another's claim is not committed.

    However few jobs there are: a planner that walks a small table would lock all of it.
    """
    for count in (2, 3, 9):
        submit(store, f"job-{count}-0")
        for number in range(1, count):
            submit(store, f"job-{count}-{number}")
        met = meet(database, exchange, lambda s: exchange(s, runner_id="other"))
        assert met.waited != database.row_locks
        taken = [claim.job_id for claim in (*met.first.claims, *met.second.claims)]
        assert taken == [f"job-{count}-0", f"job-{count}-1"]
        for name in store.list_jobs(limit=None):
            store.delete_job(name.id)


def test_a_store_goes_past_another_runners_claim(database, store):
    """Where rows are locked, storing what one runner holds doesn't wait for another's claim."""
    for name in ("a", "b"):
        submit(store, name, 2)
    (claim,) = exchange(store).claims
    met = meet(database, lambda s: exchange(s, runner_id="other"), storing(done(claim, '"x"')))
    assert met.waited != database.row_locks
    assert met.second.stored == [claim.token]
    assert [each.job_id for each in met.first.claims] == ["b"]
    assert broken(database) == []


def test_two_releases_put_a_target_back_once(database, claim):
    """The second waits or skips the turn, and finds nothing: the loss is counted once."""
    met = meet(database, releasing, releasing)
    assert met.lost(skips=True)
    assert (met.first.put_back, met.second.put_back) == (1, 0)
    assert database.query("SELECT lost FROM batch_target") == [(1,)]
