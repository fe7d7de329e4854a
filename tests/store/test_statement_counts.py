"""How many statements each call sends, however many jobs are kept and however large they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from batchmill.records import Exchange, Outcome
from batchmill.runner import Runner
from batchmill.store import BatchRepository
from batchmill.store.operations.removing import STEP_JOBS
from tests.store.filling import add_jobs
from tests.store.support import done, submit
from tests.store.support import exchange as exchange_of
from tests.support.database import Database
from tests.support.fixtures import database, make_database, migrated_sqlite, store
from tests.support.injection import BEFORE_STATEMENT, Counts, Points, listening

__all__ = ["database", "make_database", "migrated_sqlite", "store"]

KINDS = ("sqlite", "postgresql", "mariadb")
NOW = 5000
"""The second at which all happens that isn't there from the start."""

STATEMENTS = {
    "submit": (8, 9, 9),
    "submit that is reused": (5, 7, 7),
    "submit of a local job": (10, 10, 11),
    "exchange with nothing to do": (3, 3, 3),
    "exchange of 1 claim": (6, 6, 6),
    "exchange of 1 outcome and 1 claim": (8, 8, 8),
    "exchange of 32 outcomes and 32 claims": (8, 8, 8),
    "exchange that settles 1": (5, 6, 6),
    "exchange that settles 32": (5, 6, 6),
    "exchange that evicts": (12, 17, 16),
    "progress": (1, 1, 1),
    "status": (2, 2, 2),
    "results": (2, 2, 2),
    "hold of 1": (4, 4, 4),
    "hold of 32": (4, 4, 4),
    "release with nothing lost": (2, 2, 2),
    "cancel": (4, 4, 4),
    "cancel of a job in flight": (3, 3, 3),
    "sweep with nothing expired": (1, 1, 1),
    "sweep of one step": (6, 9, 9),
    "evict with nothing over": (1, 1, 1),
    "evict of one step": (8, 11, 11),
}
"""On SQLite, PostgreSQL and MariaDB, without BEGIN and COMMIT.

A change is a change of what every call costs where the database is far away.
"""


@pytest.mark.parametrize("size", [2, 200])
def test_statements_of_each_call(database: Database, store: BatchRepository, size: int) -> None:
    """Each call sends as many statements with 2 kept jobs and targets as with 200."""
    add_jobs(database, 0, 2 * size, "done")
    add_jobs(database, 1000, 150, "queued", targets=size)
    column = KINDS.index(database.kind)
    points, sent = Points(store.engine), {}
    for name, call in calls(store, size):
        with listening(points, Counts()) as counts:
            call()
        sent[name] = sum(
            point == BEFORE_STATEMENT and not text.startswith("BEGIN")
            for point, text in counts.passed
        )
    assert sent == {name: expected[column] for name, expected in STATEMENTS.items()}


Calls = Iterator[tuple[str, Callable[[], Any]]]
"""Each call by its name, handed out when all that it needs is there."""


def calls(store: BatchRepository, size: int) -> Calls:
    yield from submits(store, size)
    yield from exchanges(store)
    yield from endings(store)
    yield from reads(store)
    yield from holds(store)
    yield from removals(store, size)


def exchange(store: BatchRepository, outcomes: Sequence[Outcome] = (), **given: Any) -> Exchange:
    return exchange_of(store, outcomes, **({"now": NOW} | given))


def submits(store: BatchRepository, size: int) -> Calls:
    new = partial(submit, store, count=size, queue="elsewhere", now=200)
    new("first")  # a new connection may be asked for its limits
    yield "submit", partial(new, "new")
    yield "submit that is reused", partial(new, "other", idem_key="key-new")
    yield "submit of a local job", partial(new, "local", home="at home", now=NOW)


def exchanges(store: BatchRepository) -> Calls:
    yield "exchange with nothing to do", partial(exchange, store, queue="empty")
    yield "exchange of 1 claim", partial(exchange, store, runner_id="a")
    (claim,) = exchange(store, runner_id="b").claims
    one = partial(exchange, store, [done(claim)], runner_id="b")
    yield "exchange of 1 outcome and 1 claim", one
    claims = exchange(store, runner_id="c", want=32).claims
    outcomes = [done(claim) for claim in claims]
    many = partial(exchange, store, outcomes, runner_id="c", want=32)
    yield "exchange of 32 outcomes and 32 claims", many


def endings(store: BatchRepository) -> Calls:
    """Exchanges that only store, each the last target of its job."""
    for count in (1, 32):
        queue = f"ending {count}"
        for number in range(count):
            submit(store, f"{queue} {number}", queue=queue, now=NOW)
        claims = exchange(store, queue=queue, want=count).claims
        outcomes = [done(claim) for claim in claims]
        yield (
            f"exchange that settles {count}",
            partial(exchange, store, outcomes, want=0, queue=queue),
        )
    (claim,) = exchange(store, runner_id="d").claims
    budget = store.nbytes() - 1
    yield (
        "exchange that evicts",
        partial(exchange, store, [done(claim)], runner_id="d", want=0, max_bytes=budget),
    )


def reads(store: BatchRepository) -> Calls:
    runner = Runner(store, print)
    yield "progress", partial(runner.progress, "j1000")
    yield "status", partial(runner.status, "j1000")
    yield "results", lambda: list(runner.results("j1000"))


def holds(store: BatchRepository) -> Calls:
    for count in (1, 32):
        name = f"e{count}"
        tokens = [claim.token for claim in exchange(store, runner_id=name, want=count).claims]
        hold = partial(store.hold, name, tokens, now=NOW, hold_for=60)
        hold()  # the first one also makes the runner's row
        yield f"hold of {count}", hold
    release = partial(store.release_lost, now=NOW, hold_for=60, max_attempts=3, limit=100)
    yield "release with nothing lost", release
    yield "cancel", partial(store.cancel_job, "j1149", now=NOW)
    (claim,) = exchange(store, runner_id="f").claims
    yield "cancel of a job in flight", partial(store.cancel_job, claim.job_id, now=NOW)


def removals(store: BatchRepository, size: int) -> Calls:
    """As many jobs as one step may delete, or all those that there are at first."""
    most = min(size, STEP_JOBS)
    sweep = partial(store.sweep, ttl=timedelta(0), limit=STEP_JOBS)
    yield "sweep with nothing expired", partial(sweep, now=99)
    yield "sweep of one step", partial(sweep, now=100 + size)
    nbytes = store.nbytes()
    yield "evict with nothing over", partial(store.evict_oldest, max_bytes=nbytes)
    yield "evict of one step", partial(store.evict_oldest, max_bytes=nbytes - 4 * most + 4)
