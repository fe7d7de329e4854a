"""The fairness bound, from what two processes noted of their exchanges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.processes import Process
from tests.hosts.support import runner_on, submitted
from tests.runner.helpers import until
from tests.support.invariants import broken
from tests.support.tables import print_later

JOBS, TARGETS, PROCESSES = 12, 20, 2

Noted = dict[str, Any]
Place = tuple[str, int]


def journal(paths: list[Path]) -> list[Noted]:
    """The exchanges of all processes, as they began."""
    lines = [line for path in paths for line in path.read_text().splitlines()]
    found = sorted(map(json.loads, lines), key=lambda noted: noted["begun"])
    for noted in found:
        noted["claims"] = [tuple(place) for place in noted["claims"]]
    return found


def waited(exchanges: list[Noted]) -> list[int]:
    """For each target but a job's first: the others that started while it could have.

    It could once the exchange that stored the one before it had ended, and until the one that
    claimed it began: what begins later finds it locked, however long its own claim takes.
    """
    ready, claim = {}, {}
    for number, noted in enumerate(exchanges):
        ready |= {(job, idx + 1): noted["ended"] for job, idx in noted["stored"]}
        claim |= dict.fromkeys(noted["claims"], number)
    return [
        _others(exchanges, place, at, claim[place]) for place, at in ready.items() if place in claim
    ]


def _others(exchanges: list[Noted], place: Place, ready: float, claimed_by: int) -> int:
    count = 0
    for noted in exchanges[:claimed_by]:
        if noted["ended"] > ready:
            count += sum(job != place[0] for job, _ in noted["claims"])
    return count + int(exchanges[claimed_by]["claims"].index(place))


@pytest.mark.parametrize("workers", [1, 3])
def test_the_bound_of_two_processes(database, tmp_path, workers):
    """At most L - 1 targets of others start before a ready job's, and one a concurrent claimer."""
    submitted(runner_on(database.store(), print), JOBS, TARGETS)
    paths = [tmp_path / f"journal-{n}" for n in range(PROCESSES)]
    given = {"hold_for": 60, "fetch": 0.004, "workers": workers}
    processes = [
        Process(tmp_path, f"r{n}", database.url, journal=str(path), **given)
        for n, path in enumerate(paths)
    ]
    try:
        until(lambda: database.query("SELECT count(*) FROM batch_turn") == [(0,)], within=50)
    finally:
        for process in processes:
            process.end()
    counts, bound = waited(journal(paths)), JOBS - 1 + PROCESSES * workers
    print_later(
        f"fairness, {database.kind}, {PROCESSES} processes of {workers} workers, {JOBS} jobs",
        [f"{max(counts)} at most, {sum(counts) / len(counts):.2f} on average; bound {bound}"],
    )
    assert len(counts) == JOBS * (TARGETS - 1)
    assert max(counts) <= bound
    assert broken(database, logged=True) == []
