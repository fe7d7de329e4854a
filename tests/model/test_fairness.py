"""No job waits for longer than the others take one turn each (design.md section 4, property 2)."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from tests.model.interleaving import ACTS, Act, Mill
from tests.model.stores import NewStore


@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(ACTS)
def test_nobody_waits_for_more_than_one_turn_of_each(new_store: NewStore, acts: list[Act]) -> None:
    """However runners interleave, at most L - 1 targets of others start before a ready job's."""
    mill = Mill(new_store())
    for act in acts:
        mill.do(act)
    mill.drain()
