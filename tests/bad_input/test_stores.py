"""What a store, and a runner on it, answer to odd input is what the table says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.bad_input.judging import Open, expected, problems, reaches_the_store
from tests.bad_input.runners import RUNNER
from tests.bad_input.stores import JOB_STORE, REPOSITORY, Table
from tests.bad_input.values import KINDS
from tests.bad_input.worlds import STORES, World

METHODS = REPOSITORY | JOB_STORE
ON_A_RUNNER = {method: table for method, table in RUNNER.items() if method != "Runner"}


def cases(table: Table) -> Iterator[Any]:
    """Each argument of each method, on the stores of this machine and on each server.

    On a server in short only with the values that aren't rejected before it, if there are any.
    """
    for method, arguments in table.items():
        for name in arguments:
            yield case(STORES, method, name, rejected=True)
            outcomes = [expected(table, method, name, kind) for kind in KINDS]
            for stores in (("MemoryStore", "PostgreSQL"), ("MemoryStore", "MariaDB")):
                if any(map(reaches_the_store, outcomes)):
                    yield case(stores, method, name, rejected=False)
                yield case(stores, method, name, rejected=True, marks=pytest.mark.soak)


def case(stores: Sequence[str], method: str, name: str, *, rejected: bool, marks: Any = ()) -> Any:
    """The parameters of one test."""
    where = "" if stores is STORES else f"-{stores[-1]}-{'all' if rejected else 'that reach it'}"
    return pytest.param(stores, method, name, rejected, id=f"{method}-{name}{where}", marks=marks)


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


EACH = ("stores", "method", "name", "rejected")


@pytest.mark.parametrize(EACH, list(cases(METHODS)))
def test_every_value_for_a_store(
    open_world: Open, stores: Sequence[str], method: str, name: str, rejected: bool
) -> None:
    """Each kind of value ends as documented, alike on each store; a rejection changes nothing."""
    wrong = problems(open_world, of_store, METHODS, method, name, stores, rejected=rejected)
    assert not wrong, "\n".join(wrong[:6])


@pytest.mark.parametrize(EACH, list(cases(ON_A_RUNNER)))
def test_every_value_for_a_runner(
    open_world: Open, stores: Sequence[str], method: str, name: str, rejected: bool
) -> None:
    """The same of a runner, on each store."""
    wrong = problems(open_world, of_runner, ON_A_RUNNER, method, name, stores, rejected=rejected)
    assert not wrong, "\n".join(wrong[:6])
