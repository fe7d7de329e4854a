"""What a store, and a runner on it, answer to odd input is what the table says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bad_input.judging import Open, problems
from tests.bad_input.runners import RUNNER
from tests.bad_input.stores import JOB_STORE, REPOSITORY, Table
from tests.bad_input.worlds import World

METHODS = REPOSITORY | JOB_STORE
ON_A_RUNNER = {method: table for method, table in RUNNER.items() if method != "Runner"}


def cases(table: Table) -> list[Any]:
    """Each argument of each method."""
    return [
        pytest.param(method, name, id=f"{method}-{name}")
        for method, arguments in table.items()
        for name in arguments
    ]


def of_store(world: World, method: str) -> Any:
    """The store's method."""
    return getattr(world.store, method)


def of_runner(world: World, method: str) -> Any:
    """The runner's method; only a started one can be drained."""
    runner = world.run(start=method == "drain")
    if method == "drain" and not world.drained:
        runner.drain(10)
        world.drained = True
    return getattr(runner, method)


ON_SERVERS = pytest.mark.parametrize(
    "server", ["PostgreSQL", pytest.param("MariaDB", marks=pytest.mark.mariadb)]
)
HOW_MANY = pytest.mark.parametrize(
    "rejected", [False, pytest.param(True, marks=pytest.mark.soak)], ids=["that reach it", "all"]
)


@pytest.mark.parametrize(("method", "name"), cases(METHODS))
def test_every_value_for_a_store(open_world: Open, method: str, name: str) -> None:
    """Each kind of value ends as documented, alike on each store; a rejection changes nothing."""
    wrong = problems(open_world, of_store, METHODS, method, name)
    assert not wrong, "\n".join(wrong[:6])


@pytest.mark.parametrize(("method", "name"), cases(ON_A_RUNNER))
def test_every_value_for_a_runner(open_world: Open, method: str, name: str) -> None:
    """The same of a runner, on each store."""
    wrong = problems(open_world, of_runner, ON_A_RUNNER, method, name)
    assert not wrong, "\n".join(wrong[:6])


@ON_SERVERS
@HOW_MANY
@pytest.mark.parametrize(("method", "name"), cases(METHODS))
def test_every_value_for_a_server(
    open_world: Open, server: str, rejected: bool, method: str, name: str
) -> None:
    """The same of a store on a server; in short only the values that are not rejected before it."""
    stores = ("MemoryStore", server)
    wrong = problems(open_world, of_store, METHODS, method, name, stores, rejected=rejected)
    assert not wrong, "\n".join(wrong[:6])


@ON_SERVERS
@HOW_MANY
@pytest.mark.parametrize(("method", "name"), cases(ON_A_RUNNER))
def test_every_value_for_a_runner_on_a_server(
    open_world: Open, server: str, rejected: bool, method: str, name: str
) -> None:
    """The same of a runner on such a store."""
    stores = ("MemoryStore", server)
    wrong = problems(open_world, of_runner, ON_A_RUNNER, method, name, stores, rejected=rejected)
    assert not wrong, "\n".join(wrong[:6])
