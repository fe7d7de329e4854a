"""Submits inside an application's own transaction, on SQLite."""

from __future__ import annotations

import shutil
from datetime import timedelta

import pytest
from sqlalchemy.orm import Session

from batchmill.runner import Hooks
from batchmill.store import BatchRepository, create_store_engine
from tests.runner.helpers import ANNA, BERT, PATIENCE, User


@pytest.fixture
def store(migrated, tmp_path):
    """A repository whose pool has one connection, so that a second one would wait in vain."""
    path = tmp_path / "jobs.db"
    shutil.copy(migrated, path)
    engine = create_store_engine(f"sqlite:///{path}", pool_size=1, max_overflow=0, pool_timeout=1.0)
    yield BatchRepository(engine)
    engine.dispose()


def resolve(name: str, caller_class: str) -> User:
    """Makes a caller of any name."""
    return User(name)


@pytest.mark.parametrize("resolver", [None, resolve], ids=["local", "shared"])
def test_an_order_and_its_job_commit_together(make, store, resolver):
    """Both are there after the commit, and the job runs; pool size 1 is enough."""
    told = []
    hooks = Hooks(job=told.append, depth=lambda _: None)
    runner = make(hooks=hooks, resolve_caller=resolver, start=False)
    with Session(store.engine) as session:
        job = runner.submit(ANNA, ["u"], within=session)
        assert told == []
        session.commit()
    runner.start()
    assert runner.wait(job.job_id, PATIENCE).status == "done"
    runner.close()
    assert told == ["created", "done"]


def test_a_rollback_takes_the_job_along(make, store, clock):
    """Neither is there, and after a ttl the runner has forgotten it."""
    told = []
    runner = make(hooks=Hooks(job=told.append), start=False, clock=clock, ttl=timedelta(seconds=10))
    with Session(store.engine) as session:
        job = runner.submit(ANNA, ["u"], within=session)
        session.rollback()
    assert runner.progress(job.job_id) is None
    clock.advance(11)
    runner._parts.housekeeper.step()
    assert told == []
    assert len(runner._parts.kept) == 0


def test_a_replay_within_a_transaction_is_reused(make, store):
    """The key answers inside a transaction as it does outside."""
    runner = make(start=False)
    job = runner.submit(ANNA, ["u"])
    with store.engine.begin() as connection:
        assert runner.submit(ANNA, ["u"], within=connection) == (job.job_id, True)
        assert not runner.submit(BERT, ["u"], within=connection).reused


def test_eight_workers_need_one_connection(make, store):
    """No connection is held during a fetch (design.md section 4, property 6)."""
    runner = make(workers=8)
    jobs = [runner.submit(ANNA, [f"{job}/{idx}" for idx in range(4)]) for job in range(12)]
    assert {runner.wait(job.job_id, PATIENCE).status for job in jobs} == {"done"}
