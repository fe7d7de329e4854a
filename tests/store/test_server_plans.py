"""How servers would run our statements: no hot one may walk a table that grows.

Plans depend on what the planner knows: each test has statistics of another time, and PostgreSQL's
are looked at with values and, as for what a connection runs often, without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import pytest

from batchmill.store.capabilities import capabilities_of_kind
from batchmill.store.statements import turns
from tests.store import plans
from tests.store.filling import add_jobs
from tests.store.plans import Explainer, Statement, Walk
from tests.support import server_database
from tests.support.fixtures import make_database, on_servers

__all__ = ["make_database"]

GROWING = ("batch_job", "batch_target")
CLAIMS = {"claimable_turns", "held_turns"}
EXCHANGE = CLAIMS | {"write_turn", "take_turn", "write_target", "add_to_job"}
AT_START = {"end_live_jobs"}
"""What runs once, at an application's start: where many jobs are live a walk is right."""
ALL_TURNS = {
    "delete_all_turns",
    "first_lost_runner",
    "first_lost_turn",
    "forget_lost_runners",
    "lock_all_turns",
    "lost_turns",
    "next_ready",
    "unfinished_jobs",
}
"""What looks at everybody's turns, which are as many as there are live jobs; none is a claim."""

Look = Callable[[Explainer, Statement], list[Walk]]
LOOKS: dict[str, tuple[Look, ...]] = {
    "mariadb": (plans.walks_on_mariadb,),
    "postgresql": (plans.walks_on_postgresql, plans.generic_walks_on_postgresql),
}
SORTS = {"mariadb": plans.sorts_on_mariadb, "postgresql": plans.sorts_on_postgresql}
ANALYZE = {
    "mariadb": "ANALYZE TABLE batch_job, batch_target, batch_turn, batch_runner",
    "postgresql": "ANALYZE",
}
KEEP_STATISTICS = {
    "mariadb": "ALTER TABLE {} STATS_AUTO_RECALC = 0",
    "postgresql": "ALTER TABLE {} SET (autovacuum_enabled = false)",
}


@pytest.fixture
def database(make_database, monkeypatch):
    """One whose statistics are only made anew where a test says so; it is dropped after it.

    None that another test has emptied: an autovacuum may have looked at it since.
    """
    monkeypatch.setattr(server_database, "_FREE", {})
    database = make_database()
    database._odd.append(database.url)
    for table in (*GROWING, "batch_turn"):
        database.query(KEEP_STATISTICS[database.kind].format(table))
    return database


class Found(NamedTuple):
    """A walk of a growing table, or of all turns."""

    name: str
    variant: str
    walk: Walk


def found(database) -> Iterator[Found]:
    """All of them."""
    with database.engine().connect() as connection:
        explainer = Explainer(connection)
        for statement in plans.statements(capabilities_of_kind(database.kind)):
            for look in LOOKS[database.kind]:
                for walk in look(explainer, statement):
                    if walk.table in (*GROWING, "batch_turn"):
                        yield Found(statement.name, f"{statement}, {look.__name__}", walk)


def of_kept(walks: Sequence[Found]) -> list[Found]:
    """The walks of jobs and targets that no statement may do."""
    return [
        each
        for each in walks
        if each.walk.table in GROWING and each.name not in plans.WHOLE_TABLE | AT_START
        if each.name not in plans.WALKS_AN_INDEX or not each.walk.index
    ]


def of_turns(walks: Sequence[Found], names: set[str] | None = None) -> list[Found]:
    """The walks of all turns by these statements, by all that have no reason to if None."""
    return [
        each
        for each in walks
        if each.walk.table == "batch_turn"
        if (each.name not in ALL_TURNS if names is None else each.name in names)
    ]


def fill(database) -> None:
    """20,000 kept jobs of two targets each."""
    add_jobs(database, 0, plans.FIRST_LIVE, "done")


def add_live(database) -> None:
    """7,500 jobs that wait, and 2,500 of ten runners with a target in flight."""
    add_jobs(database, plans.FIRST_LIVE, 2_500, "running")
    add_jobs(database, plans.FIRST_LIVE + 2_500, 7_500, "queued")


@on_servers
def test_many_live_jobs(database):
    """No statement walks the kept jobs, nor one for a few turns all of them."""
    fill(database)
    add_live(database)
    database.query(ANALYZE[database.kind])
    walks = list(found(database))
    assert of_kept(walks) == []
    assert of_turns(walks) == []


@on_servers
def test_claims_read_no_more_turns_than_they_take(database):
    """They come in the order of an index, so that it doesn't matter how many wait behind them."""
    fill(database)
    add_live(database)
    database.query(ANALYZE[database.kind])
    with database.engine().connect() as connection:
        for locking in (False, True):
            statement = Statement(turns.claimable_turns, (True, locking))
            assert SORTS[database.kind](Explainer(connection), statement) == []


@on_servers
def test_statistics_from_an_empty_rotation(database):
    """Nor is there one where the planner thinks that no job is live; claims walk no turns either.

    What finds a few turns by a list may walk them once, until the statistics are made anew.
    """
    fill(database)
    database.query(ANALYZE[database.kind])
    add_live(database)
    walks = list(found(database))
    assert of_kept(walks) == []
    assert of_turns(walks, CLAIMS) == []


@on_servers
def test_statistics_from_a_large_rotation(database):
    """Nor is there one where the planner thinks that thousands of jobs are live."""
    fill(database)
    add_live(database)
    database.query(ANALYZE[database.kind])
    first, last = 100 + plans.FIRST_LIVE + 32, 100 + plans.FIRST_LIVE + 9_900
    ended = f"created_at >= {first} AND created_at < {last}"
    database.query(
        f"DELETE FROM batch_turn WHERE job_id IN (SELECT id FROM batch_job WHERE {ended})"
    )
    database.query(f"UPDATE batch_job SET status = 'done' WHERE {ended}")
    walks = list(found(database))
    assert of_kept(walks) == []
    assert of_turns(walks, EXCHANGE) == []


@pytest.mark.parametrize("make_database", ["postgresql"], indirect=True)
def test_plans_from_an_empty_database(database):
    """A connection that has run it on an empty database keeps a plan that stays good.

    PostgreSQL's statement that was prepared keeps its plan until somebody analyses the table.
    """
    assert [each for each in found(database) if each.name in EXCHANGE] == []
