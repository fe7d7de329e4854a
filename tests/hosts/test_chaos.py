"""Chaos: runners are killed and stopped, and the server is restarted, while all goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hosts.chaos import BACK_WITHIN, FETCH, RUNNERS, WORKERS, Chaos, Plan, Story
from tests.hosts.servers import EACH, running
from tests.hosts.support import forget
from tests.support.database import Database
from tests.support.invariants import broken
from tests.support.tables import print_later


def show(story: Story) -> None:
    """Print how it went."""
    kinds = [event.what for event in story.events]
    events = ", ".join(f"{kinds.count(kind)} x {kind}" for kind in sorted(set(kinds)))
    begin, end = story.calm[1], story.events[-1].at
    rates = f"undisturbed {story.undisturbed:.0f}/s, disturbed {story.rate(begin, end - begin):.0f}"
    calls = ", ".join(f"{times} {name}" for name, times in sorted(story.outcomes.items()))
    back = [
        f"{event.at:5.1f} s {event.what} of {event.whom}: back at 90 % after"
        f" {story.back_after(event):.1f} s"
        for event in story.hurt()
    ]
    stored = f"{events}; {len(story.finishes)} targets stored; {rates}/s on average"
    print_later(f"chaos, {story.kind}", [stored, *back, f"the application's calls: {calls}"])


def check(database: Database, story: Story, plan: Plan, logs: str) -> None:
    """Everything that is promised, but for the rate."""
    assert database.query("SELECT DISTINCT status FROM batch_job") == [("done",)]
    ((jobs,),) = database.query("SELECT count(*) FROM batch_job")
    assert len(story.finishes) == jobs * plan.targets
    assert broken(database, logged=True) == []
    assert {name.partition(": ")[2] for name in story.outcomes} <= {"", "StoreUnavailable"}
    assert "Exception in thread" not in logs


def go_through(kind: str, folder: Path, plan: Plan) -> Story:
    """One run on a server of its own, checked but for the rate."""
    with running(kind) as server:
        database = server.database()
        database.log_finishes()
        chaos = Chaos(server, folder, plan)
        try:
            story = chaos.run(database)
            show(story)
            check(database, story, plan, chaos.logs())
        finally:
            forget(database)
            database.close()
    return story


def test_some_chaos(tmp_path):
    """Every job ends, every target is stored once, and nobody is told.

    What is tested at the same time has a say in the rate of so short a time.
    """
    go_through("postgresql", tmp_path, Plan(calm=4, wild=7, restarts=1, targets=10))


@pytest.mark.soak
@pytest.mark.timeout(400)
@pytest.mark.parametrize("kind", EACH)
def test_a_minute_of_chaos(tmp_path, kind):
    """After each kill and each restart the rate is back at 90 % within hold_for and 5 s, too."""
    story = go_through(kind, tmp_path, Plan())
    assert story.undisturbed >= RUNNERS * WORKERS / FETCH / 2, "too little to be 90 % of"
    late = {event: story.back_after(event) for event in story.hurt()}
    assert {event: after for event, after in late.items() if after > BACK_WITHIN} == {}
