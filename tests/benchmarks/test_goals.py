"""What the benchmark calls reached, missed, and an accident."""

from __future__ import annotations

import pytest

from benchmarks.goals import GOALS, Goal
from benchmarks.runs import PARTS

pytestmark = pytest.mark.checkout

AT_LEAST = Goal("key", "part", "a ratio", required=0.4, aim=0.7)
AT_MOST = Goal("key", "part", "a cost", required=1.2, aim=1.05, at_most=True)
SLOW = Goal("key", "part", "a wait", required=2, aim=1, unit="ms", at_most=True)


@pytest.mark.parametrize(
    ("goal", "value", "verdict"),
    [
        (AT_LEAST, 0.7, "aim reached"),
        (AT_LEAST, 0.69, "reached"),
        (AT_LEAST, 0.4, "reached"),
        (AT_LEAST, 0.39, "missed"),
        (AT_LEAST, None, "not measured"),
        (AT_MOST, 1.05, "aim reached"),
        (AT_MOST, 1.2, "reached"),
        (AT_MOST, 1.21, "missed"),
        (Goal("key", "part", "no more than a report"), 0.1, "reported"),
        (Goal("key", "part", "an aim alone", aim=1.3), 1.2, "reported"),
        (Goal("key", "part", "an aim alone", aim=1.3), 1.3, "aim reached"),
        (Goal("key", "part", "no aim", required=1.2, at_most=True), 1.0, "reached"),
    ],
)
def test_a_value_is_judged_by_what_is_required_and_aimed_at(
    goal: Goal, value: float | None, verdict: str
) -> None:
    """The limits themselves are enough; less is better only where the row says at most."""
    assert goal.judge(value) == verdict


@pytest.mark.parametrize(
    ("goal", "value", "says"),
    [
        (AT_LEAST, 0.2, "ok"),
        (AT_MOST, 2.5, "accident"),
        (SLOW, 1000, "reported"),
        (SLOW, None, "not measured"),
    ],
)
def test_the_short_form_says_no_more_than_it_knows(
    goal: Goal, value: float | None, says: str
) -> None:
    """An accident, or none; of what is no accident ever, the figure alone."""
    assert goal.guard(value) == says


@pytest.mark.parametrize(
    ("goal", "value", "accident"),
    [
        (AT_LEAST, 0.2, False),
        (AT_LEAST, 0.19, True),
        (AT_MOST, 2.4, False),
        (AT_MOST, 2.41, True),
        (SLOW, 1000, False),
        (AT_LEAST, None, False),
        (Goal("key", "part", "nothing required", aim=1), 0.0, False),
    ],
)
def test_under_half_of_what_is_required_is_an_accident(
    goal: Goal, value: float | None, accident: bool
) -> None:
    """The guard is for ratios; a time in milliseconds is the disk's as much as ours."""
    assert goal.is_accident(value) is accident


def test_every_goal_belongs_to_a_part_and_has_a_key_of_its_own() -> None:
    """Each row can be measured by the part that it names."""
    assert {goal.part for goal in GOALS} <= set(PARTS)
    assert len({goal.key for goal in GOALS}) == len(GOALS)


def test_no_aim_is_less_than_what_is_required() -> None:
    """An aim is harder to reach than the required value."""
    for goal in GOALS:
        if goal.required is not None and goal.aim is not None:
            assert goal.judge(goal.aim) == "aim reached"
            assert (goal.aim < goal.required) is goal.at_most
