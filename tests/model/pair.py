"""Two stores that are asked the same, and must answer the same.

Tokens are random in each store. A claim that both hand out gets one label; the machine knows
labels only, and each side puts its own token in their place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from batchmill.errors import BatchmillError, InvalidInput
from batchmill.records import BatchJob, BatchTarget, Claim, Exchange, Held, Outcome, Released
from batchmill.testing import MemoryStore
from batchmill.testing.memory_state import Turn
from tests.model.rows import Row, Rows


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error of our tree; ``field`` is what an InvalidInput names."""

    kind: type[BatchmillError]
    field: str = ""


class Side:
    """One store, and which label stands for which of its tokens."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self._tokens: dict[str, str] = {}
        self._labels: dict[str, str] = {}

    def name(self, label: str, token: str) -> None:
        """From now on the label stands for this token."""
        assert token not in self._labels, "a token was handed out twice"
        self._tokens[label], self._labels[token] = token, label

    def token(self, label: str) -> str:
        """This store's token, or the label itself when it stands for none: a made-up token."""
        return self._tokens.get(label, label)

    def label(self, token: str) -> str:
        return self._labels.get(token, token)

    def outcomes(self, outcomes: Iterable[Outcome]) -> list[Outcome]:
        """The outcomes with this store's tokens."""
        return [replace(outcome, token=self.token(outcome.token)) for outcome in outcomes]

    def answer(self, call: Callable[[Side], Any]) -> Any:
        """What the store answers, or how it refuses; any other exception is a fault."""
        try:
            return call(self)
        except InvalidInput as error:
            return Refusal(InvalidInput, str(error).partition(":")[0])
        except BatchmillError as error:
            return Refusal(type(error))

    def plain(self, answer: Any) -> Any:
        """The answer with labels for tokens, sequences as lists, and sorted where none is due."""
        if isinstance(answer, Exchange):
            return Exchange(
                [replace(claim, token=self.label(claim.token)) for claim in answer.claims],
                [self.label(token) for token in answer.stored],
                [self.label(token) for token in answer.refused],
                [self.label(token) for token in answer.unstorable],
                list(answer.settled),
                sorted(answer.cancelled),
                answer.next_ready_at,
            )
        if isinstance(answer, Held):
            return Held([self.label(token) for token in answer.lost], sorted(answer.cancelled))
        if isinstance(answer, Released):
            failed = [self.label(token) for token in answer.failed]
            return Released(answer.put_back, failed, list(answer.settled))
        return answer


class Pair:
    """MemoryStore, which is the specification, and the store that has to agree with it."""

    def __init__(self, store: Any) -> None:
        self.memory = MemoryStore()
        self._specified, self._stored = Side(self.memory), Side(store)
        self._named = 0

    def ask(self, call: Callable[[Side], Any]) -> Any:
        """Ask both; their answer, once it agrees."""
        specified = self._specified.answer(call)
        stored = self._stored.answer(call)
        if isinstance(specified, Exchange) and isinstance(stored, Exchange):
            self._name_claims(specified.claims, stored.claims)
        answer = self._specified.plain(specified)
        assert self._stored.plain(stored) == answer
        return answer

    def _name_claims(self, specified: Iterable[Claim], stored: Iterable[Claim]) -> None:
        for one, other in zip(specified, stored, strict=False):
            self._named += 1
            self._specified.name(f"claim-{self._named}", one.token)
            self._stored.name(f"claim-{self._named}", other.token)

    def in_flight(self, runner: str, queue: str) -> list[str]:
        """The labels of what this runner holds, by the specification, in no order that matters."""
        return [
            self._specified.label(turn.token)
            for turn in self.memory._turns.values()
            if turn.token is not None and (turn.holder, turn.queue) == (runner, queue)
        ]

    def check_rows(self, rows: Rows) -> None:
        """What is stored is what the specification holds: jobs, targets, the rotation in order."""
        memory = self.memory
        assert {key: job_of(row) for key, row in rows.jobs.items()} == memory._jobs
        targets = {
            (job_id, idx): target
            for job_id, of_job in memory._targets.items()
            for idx, target in of_job.items()
        }
        assert {key: target_of(row) for key, row in rows.targets.items()} == targets
        to_come = [key for key, target in targets.items() if not target.status.finished]
        for key in [key for key in to_come if key[0] in memory._turns]:
            row = rows.targets[key]
            assert (row["attempt"], row["lost"]) == (memory._starts[key], memory._losses[key])
        turns = sorted(memory._turns.items(), key=lambda item: item[1].turn)
        assert [
            turn_of(self._stored, row)
            for row in sorted(rows.turns.values(), key=lambda row: row["turn"])
        ] == [(job_id, *self._specified_turn(turn)) for job_id, turn in turns]
        runners = {key: (row["seen_at"], row["hold_for"]) for key, row in rows.runners.items()}
        assert runners == memory._runners

    def _specified_turn(self, turn: Turn) -> tuple[Any, ...]:
        held = turn.token is not None
        return (
            turn.next_idx,
            turn.ready_at,
            turn.busy_since,
            turn.queue,
            turn.home,
            turn.holder,
            self._specified.label(turn.token) if turn.token is not None else None,
            turn.held_until if held else None,
        )


def job_of(row: Row) -> BatchJob:
    return BatchJob(**row)


def target_of(row: Row) -> BatchTarget:
    names = ("job_id", "idx", "url", "options", "status", "result", "error", "hint")
    return BatchTarget(*(row[name] for name in names))


def turn_of(side: Side, row: Row) -> tuple[Any, ...]:
    """A turn without its number, which only has to be in order."""
    names = ("job_id", "next_idx", "ready_at", "busy_since", "queue", "home", "holder")
    label = None if row["token"] is None else side.label(row["token"])
    return (*(row[name] for name in names), label, row["held_until"])
