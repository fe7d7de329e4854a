"""How SQLite would run our statements: no hot one may walk a table that grows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Engine

from batchmill.store import BatchRepository, create_store_engine, migrate
from batchmill.store.capabilities import capabilities_of_kind
from batchmill.store.statements import jobs
from batchmill.store.tx import Compiler
from tests.store.plans import WALKS_AN_INDEX, WHOLE_TABLE, statements
from tests.store.support import exchange, submit

GROWING = re.compile(r"SCAN (batch_job|batch_target|following|pending)\b(?!.*status_caller_ix)")
"""A walk of one of these tables, but for the index that holds live jobs only."""
STATEMENTS = [
    pytest.param(*statement, id=str(statement))
    for statement in statements(capabilities_of_kind("sqlite"))
]


@pytest.fixture(scope="module", params=["live jobs", "only kept jobs"])
def filled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    """Many kept jobs, with or without live ones, with statistics as ANALYZE would find them."""
    path = tmp_path_factory.mktemp("plans") / "filled.db"
    engine = create_store_engine(f"sqlite:///{path}", durability="normal")
    migrate.upgrade(engine)
    store = BatchRepository(engine)
    live = 20 if request.param == "live jobs" else 0
    for number in range(280 + live):
        submit(store, f"j{number:03}", 3)
    for number in range(280):
        store.set_job_status(f"j{number:03}", "done", now=100)
    exchange(store, want=5)
    with engine.begin() as connection:
        connection.exec_driver_sql("ANALYZE")
    yield engine
    engine.dispose()


@pytest.mark.parametrize(("build", "variant"), STATEMENTS)
def test_no_statement_scans_a_growing_table(
    filled: Engine, build: Callable[..., Any], variant: tuple[bool, ...]
) -> None:
    """Every statement finds its jobs and targets by an index, but for those named above."""
    scans = [step for step in _plan(filled, build, variant) if GROWING.search(step)]
    if build.__name__ in WALKS_AN_INDEX:
        scans = [scan for scan in scans if "USING INDEX" not in scan]
    assert scans == [] or build.__name__ in WHOLE_TABLE


@pytest.mark.parametrize("by_caller", [True, False])
@pytest.mark.parametrize("after", [True, False])
def test_a_list_of_live_jobs_looks_at_no_other(
    filled: Engine, by_caller: bool, after: bool
) -> None:
    """Queued or running jobs are listed from the index that holds live jobs only."""
    plan = _plan(filled, jobs.list_jobs, (by_caller, True, True, after))
    assert [step for step in plan if "batch_job" in step and "status_caller_ix" not in step] == []


def _plan(engine: Engine, build: Callable[..., Any], variant: tuple[bool, ...]) -> list[str]:
    compiled = Compiler(engine).compiled(build, variant)
    names = re.findall(r"\?", compiled.text)
    with engine.connect() as connection:
        plan = connection.exec_driver_sql(
            f"EXPLAIN QUERY PLAN {compiled.text}", tuple("[]" for _ in names)
        ).fetchall()
    return [row[3] for row in plan]
