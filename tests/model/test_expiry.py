"""Sweep and evict remove exactly the jobs that a plain recomputation says, and no other."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from batchmill.records import BatchJob, BatchTarget, JobStatus, Limits
from tests.model.stores import NewStore
from tests.support.fixtures import on_servers, on_sqlite

T = 1_000_000
WIDE = Limits(999, 999, 999)
PROPERTY = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

FEW = settings(PROPERTY, max_examples=12)
"""On a server, where each example takes longer."""


class Kept(NamedTuple):
    """A job to store; ``hold_for``: it was submitted and is held for so long from T on."""

    lease: int
    created_at: int
    status: JobStatus
    nbytes: int
    hold_for: float | None


AROUND = st.integers(T - 12, T + 12)
KEPT = st.lists(
    st.builds(
        Kept,
        lease=AROUND,
        created_at=AROUND,
        status=st.sampled_from(list(JobStatus)),
        nbytes=st.sampled_from([0, 1, 5, 10, 2**33]),
        hold_for=st.sampled_from([None, None, None, 1, 5.5, 12]),
    ),
    max_size=40,
)
NAMES = st.permutations([f"{start}{number}" for start in "aAé😀" for number in range(10)])
LIMIT = st.none() | st.integers(0, 30)


def store_all(store: Any, jobs: dict[str, Kept]) -> None:
    """Store the jobs, each with one target, those that are to be held by way of a submit."""
    for job_id, kept in jobs.items():
        row = BatchJob(job_id, "ada", "fleet", job_id, created_at=kept.created_at, lease=kept.lease)
        target = BatchTarget(job_id, 0, "u")
        if kept.hold_for is None:
            store.create_job(replace(row, status=kept.status, nbytes=kept.nbytes))
            store.put_targets(job_id, [target])
        else:
            submit_and_hold(store, row, target, kept)
        store.touch_job(job_id, now=kept.lease)


def submit_and_hold(store: Any, row: BatchJob, target: BatchTarget, kept: Kept) -> None:
    queue = {"queue": "default", "now": T}
    options: Any = {"home": None, "limits": WIDE, "ttl": timedelta(0)}
    store.submit_job(replace(row, targets_total=1), [target], **queue, **options)
    options = {"want": 1, "shared": True, "hold_for": kept.hold_for, "max_bytes": 2**40}
    (claim,) = store.exchange("r1", [], **queue, **options).claims
    assert claim.job_id == row.id


def gone(store: Any, names: Iterable[str]) -> set[str]:
    """The jobs that are no more; neither job nor targets nor bytes may be left of them."""
    left = {job.id: job for job in store.list_jobs(limit=None)}
    missing = set(names) - set(left)
    for job_id in missing:
        assert (store.get_job(job_id), store.get_targets(job_id)) == (None, None)
    for job_id in left:
        assert len(store.get_targets(job_id)) == 1
    assert store.nbytes() == sum(job.nbytes for job in left.values())
    assert sum(store.stats().targets.values()) == len(left)
    return missing


MOMENTS_OF_A_SWEEP = (st.floats(T - 5, T + 40), st.timedeltas(timedelta(0), timedelta(20)))


@on_sqlite
@PROPERTY
@given(KEPT, NAMES, *MOMENTS_OF_A_SWEEP, LIMIT)
def test_a_sweep_removes_exactly_what_is_due(
    new_store: NewStore,
    kept: list[Kept],
    names: list[str],
    now: float,
    ttl: timedelta,
    limit: int | None,
) -> None:
    """Every job with lease + ttl <= now and no standing hold, oldest lease first, up to limit."""
    check_sweep(new_store, kept, names, now, ttl, limit)


@on_servers
@FEW
@given(KEPT, NAMES, *MOMENTS_OF_A_SWEEP, LIMIT)
def test_a_sweep_on_a_server_removes_exactly_what_is_due(
    new_server_store: NewStore,
    kept: list[Kept],
    names: list[str],
    now: float,
    ttl: timedelta,
    limit: int | None,
) -> None:
    """The same."""
    check_sweep(new_server_store, kept, names, now, ttl, limit)


def check_sweep(
    new_store: NewStore,
    kept: list[Kept],
    names: list[str],
    now: float,
    ttl: timedelta,
    limit: int | None,
) -> None:
    jobs = dict(zip(names, kept, strict=False))
    store = new_store()
    store_all(store, jobs)
    ttl = timedelta(seconds=ttl / timedelta(days=1))  # fractions of seconds, up to 20
    due = [
        (job.lease, job_id)
        for job_id, job in jobs.items()
        if job.lease + math.ceil(ttl / timedelta(seconds=1)) <= math.floor(now)
        and (job.hold_for is None or math.floor((T + job.hold_for) * 1000) <= now * 1000)
    ]
    expected = {job_id for _, job_id in sorted(due)[:limit]}
    assert store.sweep(now=now, ttl=ttl, limit=limit) == len(expected)
    assert gone(store, jobs) == expected


BUDGET = st.integers(0, 120) | st.integers(0, 2**36)


@on_sqlite
@PROPERTY
@given(KEPT, NAMES, BUDGET, LIMIT)
def test_an_eviction_removes_exactly_enough(
    new_store: NewStore, kept: list[Kept], names: list[str], max_bytes: int, limit: int | None
) -> None:
    """Finished jobs, oldest lease first, until the total fits; never a live one, never more."""
    check_eviction(new_store, kept, names, max_bytes, limit)


@on_servers
@FEW
@given(KEPT, NAMES, BUDGET, LIMIT)
def test_an_eviction_on_a_server_removes_exactly_enough(
    new_server_store: NewStore,
    kept: list[Kept],
    names: list[str],
    max_bytes: int,
    limit: int | None,
) -> None:
    """The same."""
    check_eviction(new_server_store, kept, names, max_bytes, limit)


def check_eviction(
    new_store: NewStore, kept: list[Kept], names: list[str], max_bytes: int, limit: int | None
) -> None:
    jobs = dict(zip(names, kept, strict=False))
    store = new_store()
    store_all(store, jobs)
    sizes = {key: job.nbytes if job.hold_for is None else 0 for key, job in jobs.items()}
    finished = sorted(
        (job.lease, job_id)
        for job_id, job in jobs.items()
        if job.hold_for is None and job.status.terminal
    )
    expected: set[str] = set()
    for _, job_id in finished[:limit]:
        if sum(sizes.values()) <= max_bytes:
            break
        del sizes[job_id]
        expected.add(job_id)
    assert store.evict_oldest(max_bytes=max_bytes, limit=limit) == len(expected)
    assert gone(store, jobs) == expected
