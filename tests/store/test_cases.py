"""Cases from the field (shared/cases.md) that a SQLite store can show by itself."""

from __future__ import annotations

import itertools
import sqlite3
from datetime import timedelta

import pytest
from sqlalchemy import event

from batchmill.errors import InvalidInput, StoreBusy, StoreError
from batchmill.records import BatchTarget
from batchmill.store import BatchRepository, transactions
from batchmill.store.operations import removing
from tests.store.support import HOUR, WIDE, done, exchange, finish, job, submit, targets


def test_case_25_a_sweep_needs_few_parameters(store: BatchRepository) -> None:
    """2,500 jobs go in one sweep, and in one eviction, with room for 999 parameters a statement."""

    @event.listens_for(store.engine, "checkout")
    def _limit(connection: sqlite3.Connection, *_: object) -> None:
        connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 999)

    for call in ("sweep", "evict"):
        _many_finished_jobs(store, 2500)
        if call == "sweep":
            assert store.sweep(now=100 + 3600, ttl=HOUR) == 2500
        else:
            assert store.evict_oldest(max_bytes=0) == 2500
        assert store.list_jobs() == []


def _many_finished_jobs(store: BatchRepository, count: int) -> None:
    with store.engine.begin() as connection:
        bound = store.bound_to(connection)
        for number in range(count):
            bound.create_job(job(f"j{number}", status="done", targets_total=1, nbytes=0))
            row = BatchTarget("", 0, "u", status="done", result="{}")
            bound.put_targets(f"j{number}", [row])


def test_case_30_bytes_and_times_beyond_32_bits(store: BatchRepository) -> None:
    """Byte counts over 2 GB and 5 GB and leases after 2038 are kept exactly, as integers."""
    store.create_job(job("a", targets_total=1, nbytes=2147483640, lease=2200000000))
    store.put_targets("a", targets(1))
    store.update_target("a", 0, now=2200000000, status="done", result="x" * 100)
    stored = store.get_job("a")
    assert stored is not None
    assert (stored.nbytes, stored.lease) == (2147483740, 2200000000)
    store.create_job(job("b", nbytes=3_500_000_000))
    assert store.nbytes() == 2147483740 + 3_500_000_000
    assert type(store.nbytes()) is int


def test_case_31_names_compare_by_bytes(store: BatchRepository) -> None:
    """Callers and keys that differ in case, accents or trailing blanks are apart."""
    callers, keys = ("Acme", "acme"), ("k", "K", "k ", "é", "e")
    for caller in callers:
        for key in keys:
            submit(store, f"{caller}-{key}", caller=caller, idem_key=key)
    found = {
        store.find_job_by_idem_key(caller, key, now=100, ttl=HOUR)
        for caller in callers
        for key in keys
    }
    assert found == {f"{caller}-{key}" for caller in callers for key in keys}
    assert store.count_live_jobs("Acme") == 5


def test_case_s1_a_key_past_its_ttl_makes_a_new_job(store: BatchRepository) -> None:
    """The same key after the ttl is a new job, without an error, though the old one is kept."""
    submit(store, "old", idem_key="k")
    late = {"idem_key": "k", "now": 100 + 3600}
    assert submit(store, "new", **late).job_id == "new"
    assert store.get_job("old") is not None


def test_case_s7_half_a_submit_is_none(store: BatchRepository, raw) -> None:
    """When target 7 of 10 can't be stored, there is no row of the job at all."""
    bad = [*targets(6), BatchTarget("", 6, "u\ud83d"), *(targets(10)[7:])]
    options = {"queue": "default", "home": None, "limits": WIDE, "now": 100, "ttl": HOUR}
    with pytest.raises(InvalidInput, match=r"target.url: must not contain a lone surrogate"):
        store.submit_job(job("a", targets_total=10), bad, **options)
    raw(
        "CREATE TRIGGER seven BEFORE INSERT ON batch_target WHEN NEW.idx = 6 "
        "BEGIN SELECT RAISE(ABORT, 'seven'); END"
    )
    with pytest.raises(StoreError, match="refused a row"):
        submit(store, "a", 10)
    for table in ("batch_job", "batch_target", "batch_turn"):
        assert raw(f"SELECT count(*) FROM {table}") == [(0,)]


def test_case_s13_a_zero_is_what_it_says(store: BatchRepository) -> None:
    """Ttl 0 expires what was last used now or before; a budget of 0 evicts what is finished."""
    finish(store, "a")
    submit(store, "live")
    store.touch_job("live", now=200)
    assert store.evict_oldest(max_bytes=10**12) == 0
    assert store.evict_oldest(max_bytes=0) == 1
    assert store.sweep(now=199, ttl=timedelta(0)) == 0
    assert store.sweep(now=200, ttl=timedelta(0)) == 1


@pytest.mark.parametrize("ttl", [timedelta(seconds=-1), -1, float("nan"), None, 0])
def test_case_s13_an_odd_ttl_is_refused(store: BatchRepository, ttl: object) -> None:
    """A negative time to live, or one that is none, never sweeps everything by accident."""
    submit(store, "a")
    with pytest.raises(InvalidInput, match="^ttl: "):
        store.sweep(now=10**6, ttl=ttl)  # type: ignore[arg-type]
    assert store.get_job("a") is not None


@pytest.mark.parametrize("budget", [-1, float("nan"), 1.5, None, True])
def test_case_s13_an_odd_budget_is_refused(store: BatchRepository, budget: object) -> None:
    """A negative budget, or one that is no number of bytes, never evicts everything by accident."""
    finish(store, "a")
    with pytest.raises(InvalidInput, match="^max_bytes: "):
        store.evict_oldest(max_bytes=budget)  # type: ignore[arg-type]
    assert store.get_job("a") is not None


def test_case_s21_each_step_of_a_sweep_commits_by_itself(
    store: BatchRepository, raw, monkeypatch
) -> None:
    """A sweep that dies half-way has deleted its first steps for good; the next call goes on."""
    _many_finished_jobs(store, 60)
    steps = []
    step = removing.sweep_step

    def dying(*args: object) -> removing.Step:
        steps.append(step(*args))  # type: ignore[arg-type]
        if len(steps) == 2:
            raise KeyboardInterrupt
        return steps[-1]

    monkeypatch.setattr(removing, "sweep_step", dying)
    with pytest.raises(KeyboardInterrupt):
        store.sweep(now=10**6, ttl=HOUR)
    assert raw("SELECT count(*) FROM batch_job") == [(60 - removing.STEP_JOBS,)]
    monkeypatch.setattr(removing, "sweep_step", step)
    assert store.sweep(now=10**6, ttl=HOUR) == 60 - removing.STEP_JOBS
    assert store.nbytes() == 0


@pytest.mark.parametrize("call", ["sweep", "evict"])
def test_large_results_are_deleted_a_few_jobs_a_step(
    store: BatchRepository, monkeypatch, call: str
) -> None:
    """A step deletes no more than its bytes, unless one job alone is larger."""
    sizes = [900_000] * 4 + [5_000_000] + [900_000] * 2
    for number, nbytes in enumerate(sizes):
        store.create_job(job(f"j{number}", status="done", nbytes=nbytes))
    totals = [store.nbytes()]
    step = getattr(removing, f"{call}_step")

    def watched(*args: object) -> removing.Step:
        done = step(*args)
        totals.append(removing.total_bytes(args[0]))  # type: ignore[arg-type]
        return done  # type: ignore[no-any-return]

    monkeypatch.setattr(removing, f"{call}_step", watched)
    if call == "sweep":
        assert store.sweep(now=10**6, ttl=HOUR) == len(sizes)
    else:
        assert store.evict_oldest(max_bytes=0) == len(sizes)
    deleted = [before - after for before, after in itertools.pairwise(totals)]
    assert [size for size in deleted if size] == [1_800_000, 1_800_000, 5_000_000, 1_800_000]


def test_case_s8_progress_reads_no_result(store: BatchRepository) -> None:
    """Reading a job, and its targets without results, never touches the result column."""
    finish(store, "a", '"' + "x" * 1000 + '"')
    statements: list[str] = []

    @event.listens_for(store.engine, "before_cursor_execute")
    def _note(*args: object) -> None:
        statements.append(str(args[2]))

    store.get_job("a")
    (target,) = store.get_targets("a", with_results=False) or ()
    assert target.result is None
    assert len(statements) == 2
    assert not [text for text in statements if "result" in text]


def test_the_kept_total_costs_one_row(store: BatchRepository, raw) -> None:
    """The byte total is read from its own small table, not summed over jobs."""
    finish(store, "a", '"abc"')
    raw("UPDATE batch_total SET nbytes = 77 WHERE shard = 0")
    assert store.nbytes() == 77


def test_eviction_after_the_commit_spares_what_was_settled(store: BatchRepository) -> None:
    """However much is over the budget, a job settled in this exchange is kept, the older go."""
    for number in range(60):
        finish(store, f"old-{number:02}", '"x"')
    submit(store, "new")
    (claim,) = exchange(store).claims
    exchange(store, [done(claim, '"the result"')], want=0, max_bytes=1)
    assert [kept.id for kept in store.list_jobs()] == ["new"]
    assert store.nbytes() == len('"the result"')


def test_an_exchange_is_answered_though_its_eviction_fails(
    store: BatchRepository, monkeypatch
) -> None:
    """What was stored, settled and claimed is told when the steps after the commit meet an error.

    The next exchange that stores goes on with them.
    """
    for number in range(60):
        finish(store, f"old-{number:02}", '"x"')
    submit(store, "new", 2)
    (claim,) = exchange(store).claims
    step = removing.evict_step

    def busy(*_: object) -> None:
        raise StoreBusy("locked")

    monkeypatch.setattr(removing, "evict_step", busy)
    monkeypatch.setattr(transactions, "PATIENCE", 0.0)
    answer = exchange(store, [done(claim)], max_bytes=1)
    assert answer.stored == [claim.token]
    assert [next_one.idx for next_one in answer.claims] == [1]
    monkeypatch.setattr(removing, "evict_step", step)
    exchange(store, [done(answer.claims[0])], want=0, max_bytes=1)
    assert [kept.id for kept in store.list_jobs()] == ["new"]
