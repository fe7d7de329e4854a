"""One machine drives MemoryStore and the SQL store together: they agree, and the rows are true."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.job_rules import ExpiryRules, JobRules, ReadRules
from tests.model.rows import Bench
from tests.model.runner_rules import RoundRules
from tests.support.database import Database
from tests.support.fixtures import on_servers, on_sqlite

SHORT = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    print_blob=True,
)
LONG = settings(SHORT, max_examples=100, stateful_step_count=60)
FEW = settings(SHORT, max_examples=10, stateful_step_count=30)
LONG_ON_A_SERVER = settings(SHORT, max_examples=50, stateful_step_count=50)


class StoreMachine(JobRules, ExpiryRules, ReadRules, RoundRules):
    """The whole surface."""


@on_sqlite
@pytest.mark.timeout(300)
def test_stores_agree_and_keep_every_promise(database: Database) -> None:
    """Whatever is asked, both stores answer alike, and the rows keep every invariant."""
    run_on(database, SHORT)


@on_servers
@pytest.mark.timeout(300)
def test_a_server_agrees_and_keeps_every_promise(database: Database) -> None:
    """The same of a server's store: what it answers is what the one in memory answers."""
    run_on(database, FEW)


@on_sqlite
@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(6))
def test_stores_agree_for_long(database: Database, part: int) -> None:
    """The same with many more and longer examples; in parts, since Hypothesis remembers each."""
    run_on(database, LONG)


@on_servers
@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_server_agrees_for_long(database: Database) -> None:
    """The same of a server's store."""
    run_on(database, LONG_ON_A_SERVER)


def run_on(database: Database, how: settings) -> None:
    bench = Bench(database)
    run_state_machine_as_test(lambda: StoreMachine(bench), settings=how)
