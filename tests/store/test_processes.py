"""Several processes on one file."""

from __future__ import annotations

from pathlib import Path

import pytest

from batchmill.store import BatchRepository
from tests.store.support import job, targets
from tests.store.workers import (
    in_processes,
    open_fresh,
    record_and_sweep,
    submit_the_same,
    submit_under_a_cap,
)


def test_the_same_submit_from_many_processes_makes_one_job(store, sqlite_url, raw) -> None:
    """cases.md 9: 20 processes submit one key from a barrier: one job, 20 equal ids."""
    ids = in_processes(20, submit_the_same, sqlite_url)
    assert len(set(ids)) == 1, ids
    assert raw("SELECT id FROM batch_job") == [(ids[0],)]
    assert raw("SELECT count(*) FROM batch_target") == [(5,)]


def test_a_cap_is_exact_across_processes(store, sqlite_url, raw) -> None:
    """Of eight processes that submit at once under a cap of three, exactly three succeed."""
    answers = in_processes(8, submit_under_a_cap, sqlite_url)
    assert sorted(answers) == ["Busy"] * 5 + ["stored"] * 3
    assert raw("SELECT count(*) FROM batch_job") == [(3,)]


@pytest.mark.parametrize(
    "rounds", [3, pytest.param(30, marks=[pytest.mark.soak, pytest.mark.timeout(300)])]
)
def test_many_processes_open_one_fresh_file(tmp_path: Path, rounds: int) -> None:
    """cases.md 14: 16 processes switch one fresh file to WAL at once, without an error."""
    urls = [f"sqlite:///{tmp_path / f'{number}.db'}" for number in range(rounds)]
    assert in_processes(16, open_fresh, urls) == [{"wal"}] * 16


@pytest.mark.parametrize("ours", [True, False], ids=["our engine", "the application's engine"])
@pytest.mark.parametrize(
    "count", [60, pytest.param(500, marks=[pytest.mark.soak, pytest.mark.timeout(300)])]
)
def test_recording_and_sweeping_never_locks(store, sqlite_url, raw, ours, count) -> None:
    """cases.md 1: 2 processes x 4 threads record and sweep on one file; every count is exact."""
    names = [f"job-{number}-{thread}" for number in range(2) for thread in range(4)]
    for name in names:
        store.create_job(job(name, targets_total=count, created_at=1000, lease=1000))
        store.put_targets(name, targets(count))
    assert in_processes(2, record_and_sweep, sqlite_url, ours, count) == [[], []]
    assert raw("SELECT DISTINCT targets_done, nbytes FROM batch_job") == [(count, 2 * count)]
    assert BatchRepository(store.engine).nbytes() == 8 * count * 2
