"""What becomes of odd values that a fetch brings is what the table says, on each store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from batchmill import Result, Runner, RunnerConfig
from tests.bad_input.calls import Person, fits
from tests.bad_input.rules import STORED, TAKEN
from tests.bad_input.runners import FETCH
from tests.bad_input.values import KINDS, SECRET
from tests.bad_input.worlds import STORES, World, plain

BRING: Mapping[str, Callable[[Any], Any]] = {
    "itself": lambda value: value,
    "content": Result,
    "meta": lambda value: Result("c", value),
}
VALUES = [(kind, value) for kind, values in KINDS.items() for value in values]


def stored(world: World, bring: Callable[[Any], Any]) -> list[Any]:
    """What the store holds of a job whose targets brought each value in turn."""
    config = RunnerConfig(jobs_per_caller=9, targets_per_job=len(VALUES))
    urls = [str(number) for number in range(len(VALUES))]
    with Runner(
        world.store, lambda _context, _caller, target: bring(VALUES[int(target.url)][1]), config
    ) as runner:
        job_id, _ = runner.submit(Person("bea"), urls)
        runner.wait(job_id, 30)
    return [(row.status, row.result, row.error) for row in world.store.get_targets(job_id)]


@pytest.mark.parametrize(
    "stores",
    [
        pytest.param(STORES, id="local"),
        pytest.param(("MemoryStore", "PostgreSQL"), id="PostgreSQL"),
        pytest.param(("MemoryStore", "MariaDB"), id="MariaDB", marks=pytest.mark.mariadb),
    ],
)
@pytest.mark.parametrize("part", sorted(BRING))
def test_every_value_from_a_fetch(
    open_world: Callable[[str], World], stores: tuple[str, ...], part: str
) -> None:
    """A target whose fetch brought what can't be stored failed and says why; its siblings live."""
    rule = FETCH["what a fetch returns"][part]
    everywhere = {store: stored(open_world(store), BRING[part]) for store in stores}
    rows = everywhere[stores[0]]
    for (kind, _), (status, _, error) in zip(VALUES, rows, strict=True):
        outcome = rule.of(kind)
        if outcome == TAKEN:
            assert (status, error) == ("done", None), kind
        else:
            assert fits(f"{status}: {error}", f"failed: {outcome.removeprefix(STORED)}"), kind
            assert SECRET not in error, kind
    assert all(plain(each) == plain(rows) for each in everywhere.values())
