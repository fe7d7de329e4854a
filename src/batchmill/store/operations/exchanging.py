"""The exchange: what finished is stored and what comes next is claimed, in one transaction.

All of it is read first, under the write lock, then decided by :class:`Plan`, then written with
one statement a table: fewer statements, measured on SQLite, than writing step by step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from batchmill.record_checks import unstorable
from batchmill.records import Claim, Exchange, Outcome
from batchmill.store.boundaries import savepoint
from batchmill.store.failures import DATABASE_ERRORS, PASSING, ValueTooLarge, translate
from batchmill.store.operations.common import add_and_number, adding_bytes
from batchmill.store.operations.exchange_plan import Ask, HeldTurn, OpenTurn, Plan
from batchmill.store.operations.removing import evict_step
from batchmill.store.statements import jobs, targets, totals, turns
from batchmill.store.tx import Call, Row, Tx, call
from batchmill.validation import MAX_BYTES

_CHANGED_HANDS: Final = "a turn changed hands inside its own transaction; nothing was stored"

__all__ = ["Ask", "Exchanged", "exchange", "exchange_singly", "nothing_to_claim"]


class Exchanged(NamedTuple):
    """The answer, and whether results still stand over the byte budget."""

    answer: Exchange
    over_budget: bool


def nothing_to_claim(tx: Tx, ask: Ask) -> Exchange | None:
    """The answer to a runner that has nothing to store and finds nothing to claim, else None.

    It only reads, so that idle runners don't contend for the write lock.
    """
    if ask.want and tx.rows_of(_open_turns(replace(ask, want=1), locking=False))[0]:
        return None
    calls = [_held_turns(tx, ask, [], locking=False)]
    if ask.want:
        calls.append(_next_ready(ask))
    held, *ready = tx.rows_of(*calls)
    cancelled = [turn.job_id for turn in map(HeldTurn._make, held) if turn.ended]
    return Exchange([], [], [], [], [], cancelled, _seconds(ready[0]) if ready else None)


def exchange(tx: Tx, outcomes: Sequence[Outcome], ask: Ask) -> Exchanged:
    """Store, settle, claim, and keep the byte budget with one bounded step."""
    plan = Plan(ask)
    seen = _look(tx, outcomes, ask)
    held = {turn.token: turn for turn in seen.held}
    for outcome in outcomes:
        if plan.take(outcome, held.get(outcome.token)):
            del held[outcome.token]
    plan.claim_open(seen.open)
    plan.claim_again()
    over, ready = _carry_out(tx, plan, seen)
    answer = Exchange(
        claims=plan.claims,
        stored=plan.stored,
        refused=plan.refused,
        unstorable=plan.unstorable,
        settled=plan.settled,
        cancelled=[turn.job_id for turn in held.values() if turn.ended],
        next_ready_at=_seconds(ready) if ready else None,
    )
    return Exchanged(answer, over)


def _carry_out(tx: Tx, plan: Plan, seen: _Seen) -> tuple[bool, Sequence[Row]]:
    """Write the plan; whether the budget needs more steps, and when the next turn is ready.

    What can go with the writes does, and so does the COMMIT where the database takes all of it in
    one round trip: not before an eviction or another round of claims, which look at what is there
    by then.
    """
    ask, total = plan.ask, _number(tx, plan, seen)
    missing = ask.want - len(plan.claims)
    again = bool(missing and plan.put_back)
    evicts = bool(plan.stored) and total > ask.max_bytes
    last = not (again or evicts)
    _, found = tx.conclude(_writes(tx, plan), _news(tx, plan) if last else (), last=last)
    over = evicts and _keep_budget(tx, plan)
    if again:
        plan.claims += _claim_what_was_put_back(tx, ask, missing)
    if not last:
        found = tx.rows_of(*_news(tx, plan))
    return over, found[-1] if len(plan.claims) < ask.want else ()


class _Seen(NamedTuple):
    """What was read before anything is decided.

    ``nbytes`` and ``first_turn`` are the byte total and the next turn number: known only where
    no write hands them out, and where there are outcomes.
    """

    held: list[HeldTurn]
    open: list[OpenTurn]
    nbytes: int = 0
    first_turn: int = 0


def _look(tx: Tx, outcomes: Sequence[Outcome], ask: Ask) -> _Seen:
    """Read all at once: where the database is far away, that is one round trip."""
    calls = [_held_turns(tx, ask, [outcome.token for outcome in outcomes], locking=True)]
    if ask.want:
        calls.append(_open_turns(ask, locking=True))
    if outcomes and tx.can.sequences:
        calls.append(call(totals.total_and_number))
    held, *rest = tx.rows_of(*calls)
    found = rest.pop(0) if ask.want else []
    numbers = [int(number) for rows in rest for number in rows[0]]
    return _Seen(list(map(HeldTurn._make, held)), list(map(OpenTurn._make, found)), *numbers)


def _claim_what_was_put_back(tx: Tx, ask: Ask, want: int) -> list[Claim]:
    """A second round of claims: a target that came back may be ready again at once."""
    again = Plan(replace(ask, want=want))
    (found,) = tx.rows_of(_open_turns(again.ask, locking=True))
    again.claim_open(list(map(OpenTurn._make, found)))
    tx.run_all(*_writes(tx, again))
    return again.claims


def _news(tx: Tx, plan: Plan) -> list[Call]:
    """What follows the writes: tell other runners, and see when the next turn is ready.

    Others are told where more came back to the rotation than this one claimed. That is when it
    ends, or puts back what it can't do: not with each target stored, since at their commit
    notifications go one by one through the whole of the server.
    """
    due = [turn["of_job"] for turn in plan.back if turn["ready_at"] <= plan.ask.now_ms]
    calls = []
    if tx.can.pushes and len(due) > len(plan.claims):
        calls.append(call(turns.announce, job_ids=tx.listed(due)))
    if len(plan.claims) < plan.ask.want:
        calls.append(_next_ready(plan.ask))
    return calls


def exchange_singly(tx: Tx, outcomes: Sequence[Outcome], ask: Ask) -> Exchanged:
    """Store each outcome behind a savepoint of its own, then claim.

    For a set that could not be stored: whichever member the database refuses is stored as failed.
    The byte budget is left to the steps after it, which know every job that settled here.
    """
    alone = replace(ask, want=0, max_bytes=MAX_BYTES)
    parts, refused = [], []
    for outcome in outcomes:
        try:
            with savepoint(tx.connection, tx.can):
                parts.append(exchange(tx, [outcome], alone))
        except (ValueTooLarge, *DATABASE_ERRORS) as error:
            if isinstance(translate(error), PASSING) or not tx.connection.in_transaction():
                raise
            said = isinstance(error, ValueTooLarge)
            why = str(error) if said else "the database refused it; make it smaller"
            parts.append(exchange(tx, [unstorable(outcome, why)], alone))
            refused.append(outcome.token)
    parts.append(exchange(tx, [], ask))
    return _merged(parts, refused)


def _merged(parts: Sequence[Exchanged], unstorable_tokens: Sequence[str]) -> Exchanged:
    answers = [part.answer for part in parts]
    last = answers[-1]
    answer = Exchange(
        claims=last.claims,
        stored=[token for answer in answers for token in answer.stored],
        refused=[token for answer in answers for token in answer.refused],
        unstorable=[*unstorable_tokens, *(t for answer in answers for t in answer.unstorable)],
        settled=[settled for answer in answers for settled in answer.settled],
        cancelled=last.cancelled,
        next_ready_at=last.next_ready_at,
    )
    return Exchanged(answer, over_budget=True)


def _held_turns(tx: Tx, ask: Ask, tokens: Sequence[str], *, locking: bool) -> Call:
    return call(
        turns.held_turns,
        locking,
        queue=ask.queue,
        holder=ask.runner_id,
        tokens=tx.listed(tokens),
    )


def _open_turns(ask: Ask, *, locking: bool) -> Call:
    return call(
        turns.claimable_turns,
        ask.shared,
        locking,
        queue=ask.queue,
        now_ms=ask.now_ms,
        runner_id=ask.runner_id,
        want=ask.want,
    )


def _next_ready(ask: Ask) -> Call:
    return call(turns.next_ready, ask.shared, queue=ask.queue, runner_id=ask.runner_id)


def _seconds(ready: Sequence[Row]) -> float | None:
    """What :func:`_next_ready` found."""
    return None if ready[0][0] is None else ready[0][0] / 1000


def _number(tx: Tx, plan: Plan, seen: _Seen) -> int:
    """Number the turns; the byte total after the plan, which means nothing if it stores nothing."""
    total, turn = seen.nbytes + _bytes(plan), seen.first_turn
    if (plan.stored or plan.back) and not tx.can.sequences:
        total, turn = add_and_number(tx, nbytes=_bytes(plan), numbers=len(plan.back))
    for place, fresh in enumerate(plan.back):
        fresh["turn"] = turn + place
    return total


def _bytes(plan: Plan) -> int:
    return sum(change.nbytes for change in plan.jobs.values())


def _writes(tx: Tx, plan: Plan) -> list[Call]:
    """What writes the plan.

    The turns were read under the lock, so that each must still have its token.
    """
    writes = [
        *tx.many(targets.write_target, plan.targets),
        *tx.many(turns.write_turn, plan.back, otherwise=_CHANGED_HANDS),
        *tx.many(turns.take_turn, plan.taken, otherwise=_CHANGED_HANDS),
    ]
    if plan.gone:
        writes.append(call(turns.delete_turns, job_ids=tx.listed(plan.gone)))
    writes += _job_writes(tx, plan)
    if plan.stored and tx.can.sequences:
        writes.append(adding_bytes(tx, _bytes(plan)))
    return writes


def _job_writes(tx: Tx, plan: Plan) -> list[Call]:
    """What writes the jobs: in one order everywhere, so that no two can wait for each other.

    Where nobody else can have written since they were read, a status and a lease that stay as they
    are, as for most of a second, aren't written: each has an index that SQLite would change.
    """
    anew, counted = [], []
    for job_id, change in sorted(plan.jobs.items()):
        counts = {"done": change.done, "bytes": change.nbytes}
        if tx.can.row_locks or not change.only_counts(plan.ask.now):
            values = {"status": change.status, "error": change.error, "lease": plan.ask.now}
            anew.append({"of_job": job_id, **values, **counts})
        elif change.done:
            counted.append({"job_id": job_id, **counts})
    calls = tx.many(jobs.add_to_job, anew)
    return [*calls, Call(jobs.add_to_counters, (), counted)] if counted else calls


def _keep_budget(tx: Tx, plan: Plan) -> bool:
    """One step of eviction where the total is over the budget; True when more is needed."""
    spared = [settled.job_id for settled in plan.settled]
    return evict_step(tx, plan.ask.max_bytes, spared, None, wait=False).more
