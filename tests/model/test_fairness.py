"""No job waits for longer than the others take one turn each (design.md section 4, property 2)."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from tests.model.interleaving import ACTS, Act, Mill
from tests.model.stores import NewStore
from tests.support.fixtures import on_servers, on_sqlite

PROPERTY = settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def check(new_store: NewStore, acts: list[Act]) -> None:
    mill = Mill(new_store())
    for act in acts:
        mill.do(act)
    mill.drain()


@on_sqlite
@PROPERTY
@given(ACTS)
def test_nobody_waits_for_more_than_one_turn_of_each(new_store: NewStore, acts: list[Act]) -> None:
    """However runners interleave, at most L - 1 targets of others start before a ready job's."""
    check(new_store, acts)


@on_servers
@settings(PROPERTY, max_examples=5)
@given(ACTS)
def test_nobody_waits_for_longer_on_a_server(new_server_store: NewStore, acts: list[Act]) -> None:
    """The same."""
    check(new_server_store, acts)


@pytest.mark.soak
@pytest.mark.timeout(600)
@on_servers
@PROPERTY
@given(ACTS)
def test_nobody_waits_for_longer_on_a_server_with_many_tries(
    new_server_store: NewStore, acts: list[Act]
) -> None:
    """The same."""
    check(new_server_store, acts)
