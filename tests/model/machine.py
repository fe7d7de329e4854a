"""The machine: its clock, its two stores, what it remembers, and what it checks after each step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from hypothesis.stateful import RuleBasedStateMachine, invariant

from batchmill.records import Claim, Settled
from batchmill.validation import MAX_TIME
from tests.model.invariants import History
from tests.model.pair import Pair, Refusal, Side
from tests.model.rows import Bench
from tests.model.values import Moment, T

ID_STARTS = ("j", "J", "é", "\uffff", "😀")
"""Ids whose order by bytes, by code points and by what a locale says differ."""


class Machine(RuleBasedStateMachine):
    """What every rule uses; the rules are in subclasses."""

    def __init__(self, bench: Bench) -> None:
        super().__init__()
        self.bench = bench
        self.pair = Pair(bench.empty_store())
        self.history = History()
        self.clock: float = T
        self.claims: list[Claim] = []
        self.used_ids: list[str] = []

    def ask(self, call: Callable[[Side], Any]) -> Any:
        """Ask both stores, which have to agree."""
        return self.pair.ask(call)

    def at(self, moment: Moment) -> float:
        """The time of this step: the clock goes on, goes back, or jumps."""
        now = moment.seconds if moment.jump else self.clock + moment.seconds
        self.clock = max(-MAX_TIME, min(MAX_TIME, now))
        return self.clock

    def new_id(self, pick: int) -> str:
        """An id for a new job: mostly a fresh one, now and then one that was used before."""
        if pick < 3 and self.used_ids:
            return self.used_ids[pick % len(self.used_ids)]
        fresh = f"{ID_STARTS[pick % len(ID_STARTS)]}{len(self.used_ids)}"
        self.used_ids.append(fresh)
        return fresh

    def job_id(self, pick: int) -> str:
        """The id of a job that is stored; of none when none is, and now and then anyway."""
        stored = list(self.pair.memory._jobs)
        if not stored or pick == 0:
            return self.used_ids[0] if self.used_ids else "nobody"
        return stored[pick % len(stored)]

    def settle(self, settled: Iterable[Settled]) -> None:
        """Each job that a step says it ended was live before that step, and is named once."""
        told = [each.job_id for each in settled]
        assert len(set(told)) == len(told)
        assert not set(told) & set(self.history.ended)

    @invariant()
    def agree(self) -> None:
        """Both stores hold the same, and the rows keep every promise."""
        rows = self.bench.rows()
        self.history.check_and_remember(rows)
        self.pair.check_rows(rows)


def accepted(answer: Any) -> bool:
    """The stores did what they were asked for."""
    return not isinstance(answer, Refusal)
