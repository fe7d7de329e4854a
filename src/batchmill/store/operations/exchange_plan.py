"""What one exchange will write, decided from what was read under the lock: no I/O in here."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from batchmill.record_checks import storable
from batchmill.records import (
    Claim,
    JobStatus,
    Outcome,
    Settled,
    TargetStatus,
    status_of_finished,
    stored_bytes,
)
from batchmill.validation import AT_ONCE, to_ms


@dataclass(frozen=True, slots=True)
class Ask:
    """What a runner asks for besides handing over outcomes; ``now`` is in whole seconds."""

    runner_id: str
    queue: str
    want: int
    shared: bool
    now: int
    now_ms: int
    hold_for_ms: int
    max_bytes: int


class HeldTurn(NamedTuple):
    """A row of ``statements.turns.held_turns``.

    ``following`` is the target after the one in flight, with ``url``, ``options`` and
    ``attempt``; all four are None when that was the last.
    """

    job_id: str
    token: str
    next_idx: int
    targets_failed: int
    busy_since: int | None
    status: str
    targets_total: int
    created_at: int
    home: str | None
    following: int | None
    lease: int
    caller: str
    caller_class: str
    url: str
    options: str
    attempt: int

    @property
    def ended(self) -> bool:
        """The job was cancelled, or given a terminal status, while this target was in flight."""
        return JobStatus(self.status).terminal


class OpenTurn(NamedTuple):
    """A row of ``statements.turns.claimable_turns``."""

    job_id: str
    next_idx: int
    targets_failed: int
    busy_since: int | None
    status: str
    lease: int
    caller: str
    caller_class: str
    url: str
    options: str
    attempt: int


@dataclass(slots=True)
class JobChange:
    """What is added to a job's counters, its status, and its error (None: as it is).

    ``was_status`` and ``was_lease`` are what was read.
    """

    status: str
    was_status: str
    was_lease: int
    error: str | None = None
    done: int = 0
    nbytes: int = 0

    def only_counts(self, lease: int) -> bool:
        """Whether status, error and lease stay what they were."""
        return (self.status, lease, self.error) == (self.was_status, self.was_lease, None)


def _tokens(count: int) -> list[str]:
    """So many new tokens: the system's randomness is asked once, not for each."""
    digits = secrets.token_hex(16 * count)
    return [digits[at : at + 32] for at in range(0, 32 * count, 32)]


@dataclass(slots=True)
class Plan:
    """The writes, a list a statement, and the answer."""

    ask: Ask
    targets: list[Mapping[str, Any]] = field(default_factory=list)
    back: list[dict[str, Any]] = field(default_factory=list)
    """Turns that get a fresh number, in this order; held again where they are claimed at once."""
    taken: list[Mapping[str, Any]] = field(default_factory=list)
    jobs: dict[str, JobChange] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    unstorable: list[str] = field(default_factory=list)
    settled: list[Settled] = field(default_factory=list)
    put_back: bool = False
    _again: list[tuple[HeldTurn, dict[str, Any]]] = field(default_factory=list)

    def take(self, outcome: Outcome, turn: HeldTurn | None) -> bool:
        """Decide one outcome; ``turn`` is the one that has its token, None when none has.

        False when it is refused: the turn then stays as it is.
        """
        if turn is None or (turn.job_id, turn.next_idx) != (outcome.job_id, outcome.idx):
            self.refused.append(outcome.token)
            return False
        if outcome.kind in ("done", "failed"):
            self._store(outcome, turn)
        else:
            self._put_back(outcome, turn)
        return True

    def claim_open(self, turns: Sequence[OpenTurn]) -> None:
        """Claim turns that nobody holds, in the order given."""
        for turn, token in zip(turns, _tokens(len(turns)), strict=True):
            hold = self._new_hold(token)
            self.taken.append({"of_job": turn.job_id, **hold})
            self._start(turn, turn.next_idx, turn.busy_since, hold["token"])

    def claim_again(self) -> None:
        """Claim the next targets of the jobs stored here, while slots are left.

        They come after every open turn, since their numbers are the freshest. Where targets
        were put back as well, their places among these decide: that is left to a second round.
        """
        if self.put_back:
            return
        again = [(was, turn) for was, turn in self._again if self._may_take(was)]
        again = again[: self.ask.want - len(self.claims)]
        for (was, turn), token in zip(again, _tokens(len(again)), strict=True):
            turn.update(self._new_hold(token))
            self._start(was, turn["next_idx"], None, turn["token"])

    def _may_take(self, turn: HeldTurn) -> bool:
        """Whether the runner asks for jobs of this home; see ``statements.turns``."""
        return turn.home == self.ask.runner_id or (self.ask.shared and turn.home is None)

    def _store(self, brought: Outcome, turn: HeldTurn) -> None:
        outcome = storable(brought)
        if outcome is not brought:
            self.unstorable.append(outcome.token)
        status = TargetStatus(outcome.kind)
        nbytes = stored_bytes(outcome.result)
        self._write_target(
            turn.job_id, turn.next_idx, status, 0, outcome.result, outcome.error, outcome.hint
        )
        self.stored.append(outcome.token)
        change = self._change(turn)
        change.done, change.nbytes = 1, nbytes
        failed = turn.targets_failed + (status is TargetStatus.FAILED)
        if turn.ended:
            self.gone.append(turn.job_id)
        elif turn.following is None:
            self.gone.append(turn.job_id)
            self._settle(turn, status_of_finished(turn.targets_total, failed), "")
        else:
            self._again.append(
                (turn, self._to_the_back(turn, turn.following, failed, AT_ONCE, None))
            )

    def _put_back(self, outcome: Outcome, turn: HeldTurn) -> None:
        self._write_target(turn.job_id, turn.next_idx, TargetStatus.PENDING, 0)
        self._change(turn)
        if turn.ended:
            self.gone.append(turn.job_id)
        elif outcome.kind == "fail_job":
            self.gone.append(turn.job_id)
            self._settle(turn, JobStatus.FAILED, storable(outcome).error or "")
        else:
            ready_at, busy_since = AT_ONCE, turn.busy_since
            if outcome.kind == "later":
                ready_at = self.ask.now_ms
                if outcome.ready_at is not None:
                    ready_at = to_ms(outcome.ready_at)
                busy_since = self.ask.now_ms if busy_since is None else busy_since
            self._to_the_back(turn, turn.next_idx, turn.targets_failed, ready_at, busy_since)
            self.put_back = True

    def _settle(self, turn: HeldTurn, status: JobStatus, error: str) -> None:
        change = self._change(turn)
        change.status, change.error = status.value, error
        self.settled.append(Settled(turn.job_id, status, turn.created_at))

    def _to_the_back(
        self, turn: HeldTurn, next_idx: int, failed: int, ready_at: int, busy_since: int | None
    ) -> dict[str, Any]:
        fresh: dict[str, Any] = {
            "of_job": turn.job_id,
            "old_token": turn.token,
            "next_idx": next_idx,
            "targets_failed": failed,
            "ready_at": ready_at,
            "busy_since": busy_since,
            "holder": None,
            "token": None,
            "held_until": None,
        }
        self.back.append(fresh)
        return fresh

    def _new_hold(self, token: str) -> dict[str, Any]:
        ask = self.ask
        return {
            "holder": ask.runner_id,
            "token": token,
            "held_until": ask.now_ms + ask.hold_for_ms,
        }

    def _start(
        self, turn: HeldTurn | OpenTurn, idx: int, busy_since: int | None, token: str
    ) -> None:
        self._write_target(turn.job_id, idx, TargetStatus.RUNNING, 1)
        self._change(turn).status = JobStatus.RUNNING.value
        since = None if busy_since is None else busy_since / 1000
        self.claims.append(
            Claim(
                turn.job_id,
                idx,
                token,
                turn.attempt + 1,
                since,
                turn.caller,
                turn.caller_class,
                turn.url,
                turn.options,
            )
        )

    def _change(self, turn: HeldTurn | OpenTurn) -> JobChange:
        return self.jobs.setdefault(turn.job_id, JobChange(turn.status, turn.status, turn.lease))

    def _write_target(
        self,
        job_id: str,
        idx: int,
        status: TargetStatus,
        started: int,
        result: str | None = None,
        error: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.targets.append(
            {
                "of_job": job_id,
                "at_idx": idx,
                "status": status.value,
                "error": error,
                "hint": hint,
                "started": started,
                "losses": 0,
                "nbytes": stored_bytes(result),
                "result": result,
            }
        )
