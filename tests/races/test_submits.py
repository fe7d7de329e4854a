"""Submits that meet: one key, one cap, one id, and the upgrade before them all."""

from __future__ import annotations

import pytest

from batchmill.errors import Busy, CallerBusy, JobExists, StoreUnavailable
from batchmill.records import Limits
from batchmill.store import migrate
from tests.store.support import WIDE, job, submit
from tests.support.fixtures import on_servers
from tests.support.interleave import CHANCE, Side, meet

ONE_A_CALLER = Limits(targets_per_job=5, jobs_per_caller=1, jobs_total=5)
ONE_IN_ALL = Limits(targets_per_job=5, jobs_per_caller=5, jobs_total=1)


def submitting(job_id: str, **given: object):
    """Submits this job of two targets."""
    return lambda store: submit(store, job_id, 2, **given)


def test_the_same_key_twice_is_one_job(database):
    """The second submit waits for the first, and is answered with its job (cases.md 9)."""
    met = meet(database, submitting("a", idem_key="k"), submitting("b", idem_key="k"))
    assert met.lost()
    assert (met.first.job_id, met.first.reused) == ("a", False)
    assert (met.second.job_id, met.second.reused) == ("a", True)


def test_a_key_whose_first_submit_failed_is_free(database):
    """When the first can't commit, nothing of it is there, and the second is the one job."""
    fault = database.fault("input/output")
    met = meet(database, submitting("a", idem_key="k"), submitting("b", idem_key="k"), fault=fault)
    assert isinstance(met.first, StoreUnavailable)
    assert (met.second.job_id, met.second.reused) == ("b", False)
    assert database.query("SELECT DISTINCT job_id FROM batch_target") == [("b",)]


def test_the_last_place_of_all_goes_to_one(database):
    """The second submit waits, finds jobs_total reached, and stores nothing."""
    limits = {"limits": ONE_IN_ALL}
    met = meet(database, submitting("a", caller="x", **limits), submitting("b", **limits))
    assert met.lost()
    assert met.second.rejected is Busy


def test_the_last_place_of_a_caller_goes_to_one(database):
    """The second submit waits, finds jobs_per_caller reached, and stores nothing."""
    met = meet(database, submitting("a", limits=ONE_A_CALLER), submitting("b", limits=ONE_A_CALLER))
    assert met.lost()
    assert met.second.rejected is CallerBusy


def test_a_place_that_a_cancel_frees_is_free_once_it_is_committed(database, store):
    """A submit that waits for a cancel's commit finds the place free; one that doesn't is rejected.

    Two live jobs are never there at once.
    """
    submit(store, "old", caller="x")
    met = meet(
        database, lambda s: s.cancel_job("old", now=100), submitting("new", limits=ONE_IN_ALL)
    )
    assert met.waited or database.row_locks
    assert met.second.job_id == "new" if met.waited else met.second.rejected is Busy
    assert submit(store, "new", 2, limits=ONE_IN_ALL).job_id == "new"


def test_the_same_id_twice_is_one_job(database):
    """The second create_job waits, and is told that the id is taken."""
    met = meet(
        database, lambda s: s.create_job(job("a")), lambda s: s.create_job(job("a", lease=7))
    )
    assert met.lost()
    assert isinstance(met.second, JobExists)


@on_servers
def test_the_same_id_inside_the_applications_transaction(database):
    """create_job there waits too, is told JobExists, and the transaction goes on (cases.md 9)."""

    def in_a_transaction(store):
        with store.engine.begin() as connection:
            bound = store.bound_to(connection)
            bound.create_job(job("before"))
            with pytest.raises(JobExists):
                bound.create_job(job("a", lease=7))
            bound.create_job(job("after"))

    met = meet(database, lambda s: s.create_job(job("a")), in_a_transaction)
    assert met.waited
    stored = database.query("SELECT id, lease FROM batch_job ORDER BY id")
    assert stored == [("a", 100), ("after", 100), ("before", 100)]


@on_servers
def test_a_runner_that_is_noted_twice_at_once(database):
    """Its first submit and its first renewal meet: both are done, and it is there once."""
    met = meet(
        database,
        lambda s: s.hold("r", [], now=100, hold_for=60),
        submitting("a", home="r", now=200),
    )
    assert met.waited
    assert met.second.job_id == "a"
    seen = database.query("SELECT id, seen_at, hold_for FROM batch_runner")
    assert seen == [("r", 200_000, 60_000)]


def test_an_upgrade_meets_an_upgrade(database):
    """The second waits for the first, and finds the tables made: both succeed, one version row.

    cases.md 18.
    """
    engines = [database.engine(database.empty_url()) for _ in range(2)]
    for engine in engines:
        engine.connect().close()  # the switch to WAL is a race of its own, see tests/migrations
    one, two = map(Side, engines)
    one.start(lambda: migrate.upgrade(engines[0])).until_stopped()
    two.start(lambda: migrate.upgrade(engines[1]))
    # A server's lock is tried for again and again, so that the wait has a bound of ours.
    assert not two.stopped.wait(4 * CHANCE) if database.row_locks else two.waits(database)
    one.finish()
    two.finish()
    with engines[0].connect() as connection:
        rows = connection.exec_driver_sql(f"SELECT * FROM {migrate.VERSION_TABLE}").all()
        assert len(rows) == 1
        assert connection.exec_driver_sql("SELECT count(*) FROM batch_total").scalar() == 10
    migrate.verify(engines[1])


def test_wide_limits_let_both_in(database):
    """Two submits of different keys under wide caps wait for each other and both succeed."""
    met = meet(database, submitting("a", limits=WIDE), submitting("b", limits=WIDE))
    assert met.waited
    assert (met.first.job_id, met.second.job_id) == ("a", "b")
