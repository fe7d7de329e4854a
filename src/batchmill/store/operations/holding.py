"""Holds: renew them, and release those of lost runners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from batchmill.records import (
    RUNNER_LOST,
    Held,
    JobStatus,
    Released,
    Settled,
    TargetStatus,
    status_of_finished,
)
from batchmill.store.operations.common import number_turn
from batchmill.store.statements import jobs, runners, targets, turns
from batchmill.store.tx import Call, Row, Tx, call


def see_runner(tx: Tx, runner_id: str, now_ms: int, *, hold_for_ms: int | None) -> None:
    """Note that a runner is alive; ``hold_for_ms`` is None when a submit says so for it."""
    if tx.can.upserts:
        tx.run_all(noting_runner(runner_id, now_ms, hold_for_ms=hold_for_ms))
        return
    if hold_for_ms is None:
        known = tx.run(runners.see_submitter, runner_id=runner_id, seen_at=now_ms)
    else:
        known = tx.run(
            runners.see_runner, runner_id=runner_id, seen_at=now_ms, hold_for=hold_for_ms
        )
    if not known:
        tx.run(runners.insert_runner, id=runner_id, seen_at=now_ms, hold_for=hold_for_ms or 0)


def noting_runner(runner_id: str, now_ms: int, *, hold_for_ms: int | None) -> Call:
    """What :func:`see_runner` does in one statement, where the database has one for it."""
    values = {"id": runner_id, "seen_at": now_ms, "hold_for": hold_for_ms or 0}
    return call(runners.note_runner, hold_for_ms is not None, **values)


def hold(
    tx: Tx, runner_id: str, tokens: Sequence[str], now: int, now_ms: int, hold_for_ms: int
) -> Held:
    """Renew what the runner still holds of ``tokens``, and the leases of the jobs in it.

    The runner's own row comes last: a release locks turns before it looks at runners.
    """
    found: Sequence[Row] = []
    if tokens:
        found = tx.rows(turns.current_holds, tokens=tx.listed(tokens), holder=runner_id)
    current = {token for token, _, _ in found}
    if found:
        held = tx.listed(job_id for _, job_id, _ in found)
        tx.run(turns.renew_holds, job_ids=held, held_until=now_ms + hold_for_ms)
        tx.run(jobs.touch_jobs, job_ids=held, lease=now)
    see_runner(tx, runner_id, now_ms, hold_for_ms=hold_for_ms)
    cancelled = [job_id for _, job_id, status in found if JobStatus(status).terminal]
    return Held([token for token in tokens if token not in current], cancelled)


def leave(tx: Tx, runner_id: str) -> None:
    """Forget a runner: its local jobs count as lost."""
    tx.run(runners.forget_runner, runner_id=runner_id)


class _Lost(NamedTuple):
    """A row of ``statements.turns.lost_turns``."""

    job_id: str
    token: str | None
    next_idx: int
    targets_failed: int
    home_lost: bool
    status: str
    targets_total: int
    created_at: int
    losses: int | None


class _Release:
    """One call of ``release_lost``."""

    def __init__(self, tx: Tx, now: int, now_ms: int, max_attempts: int) -> None:
        self.tx, self.now, self.now_ms, self.max_attempts = tx, now, now_ms, max_attempts
        self.put_back = 0
        self.open_again: list[str] = []
        self.failed: list[str] = []
        self.settled: list[Settled] = []

    def release(self, turn: _Lost) -> None:
        """Do what became of one job's turn."""
        if JobStatus(turn.status).terminal or turn.home_lost:
            self._end(turn)
        elif (turn.losses or 0) + 1 >= self.max_attempts:
            self._fail_target(turn)
        else:
            self._write_target(turn, TargetStatus.PENDING, None)
            self._to_the_back(turn, turn.next_idx, turn.targets_failed)
            self.put_back += 1
            self._touch(turn)

    def _end(self, turn: _Lost) -> None:
        """Take a job out of the rotation for good; a live one fails with its home."""
        if turn.token is not None:
            self._write_target(turn, TargetStatus.PENDING, None, losses=0)
        self._leave_rotation(turn)
        if JobStatus(turn.status).live:
            self._settle(turn, JobStatus.FAILED, RUNNER_LOST)
        else:
            self._touch(turn)

    def _fail_target(self, turn: _Lost) -> None:
        """Store the target as failed: this was its last allowed loss."""
        self._write_target(turn, TargetStatus.FAILED, RUNNER_LOST)
        self.failed.append(str(turn.token))
        self.tx.run(jobs.add_to_counters, job_id=turn.job_id, done=1, bytes=0)
        self._touch(turn)
        following = self.tx.value(targets.lowest_pending, job_id=turn.job_id, start=turn.next_idx)
        failed = turn.targets_failed + 1
        if following is not None:
            self._to_the_back(turn, following, failed)
            return
        self._leave_rotation(turn)
        self._settle(turn, status_of_finished(turn.targets_total, failed), "")

    def _write_target(
        self, turn: _Lost, status: TargetStatus, error: str | None, losses: int = 1
    ) -> None:
        self.tx.run(
            targets.write_target,
            False,
            of_job=turn.job_id,
            at_idx=turn.next_idx,
            status=status.value,
            error=error,
            hint=None,
            started=0,
            losses=losses,
            nbytes=0,
            result=None,
        )

    def _to_the_back(self, turn: _Lost, next_idx: int, failed: int) -> None:
        """Give the turn a fresh number and no holder; ``busy_since`` survives a lost hold."""
        self.open_again.append(turn.job_id)
        self.tx.run(
            turns.release_turn,
            of_job=turn.job_id,
            old_token=turn.token,
            turn=number_turn(self.tx),
            next_idx=next_idx,
            targets_failed=failed,
            same_target=int(next_idx == turn.next_idx),
        )

    def _leave_rotation(self, turn: _Lost) -> None:
        self.tx.run(turns.delete_turns, job_ids=self.tx.listed([turn.job_id]))

    def _touch(self, turn: _Lost) -> None:
        self.tx.run(jobs.touch_job, job_id=turn.job_id, lease=self.now)

    def _settle(self, turn: _Lost, status: JobStatus, error: str) -> None:
        self.tx.run(
            jobs.set_status, job_id=turn.job_id, status=status.value, error=error, lease=self.now
        )
        self.settled.append(Settled(turn.job_id, status, turn.created_at))


def anything_lost(tx: Tx, now_ms: int, hold_for_ms: int) -> bool:
    """Whether a release would find anything; only reads, so that looking often is cheap."""
    looks = [call(look, now_ms=now_ms, hold_for=hold_for_ms) for look in _LOOKS]
    return any(tx.rows_of(*looks))


_LOOKS = (turns.first_lost_turn, runners.first_lost_runner)


def release_lost(
    tx: Tx, now: int, now_ms: int, hold_for_ms: int, max_attempts: int, limit: int
) -> Released:
    """Release up to ``limit`` jobs that lost runners left behind, and forget those runners."""
    found = tx.rows(turns.lost_turns, now_ms=now_ms, hold_for=hold_for_ms, limit=limit)
    release = _Release(tx, now, now_ms, max_attempts)
    for row in found:
        release.release(_Lost(*row))
    tx.run(runners.forget_lost_runners, now_ms=now_ms, hold_for=hold_for_ms)
    if release.open_again and tx.can.pushes:
        tx.rows(turns.announce, job_ids=tx.listed(release.open_again))
    return Released(release.put_back, release.failed, release.settled)
