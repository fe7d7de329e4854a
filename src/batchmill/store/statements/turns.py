"""Statements on the rotation: ``batch_turn`` and ``batch_runner``."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Executable,
    Select,
    Text,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    literal_column,
    null,
    or_,
    select,
    update,
)

from batchmill.store.capabilities import Capabilities
from batchmill.store.statements.common import (
    CHANNEL_PREFIX,
    JOB,
    RUNNER,
    TARGET,
    TURN,
    among,
    given,
    locked,
    looked_up,
    lost_from,
    named_by,
    next_number,
    next_pending,
    number,
    word,
)
from batchmill.validation import AT_ONCE

_ROTATION: Final = "batch_turn_holder_queue_turn_ix"

NUMBERS: Final = 1 << 16
"""How many turns one number of the sequence is good for: more than an exchange puts back."""


def fresh_number(can: Capabilities) -> Executable:
    """The first of so many turn numbers, all higher than any before: of the sequence."""
    return select(next_number(can) * NUMBERS)


def insert_turn(can: Capabilities) -> Executable:
    """Put a job in the rotation, and tell of it where the database pushes."""
    names = ("job_id", "turn", "next_idx", "ready_at", "queue", "home")
    inserted = insert(TURN).values({name: bindparam(name) for name in names})
    return inserted.returning(_push()) if can.pushes else inserted


def announce(can: Capabilities) -> Executable:
    """Tell whoever listens that these jobs can be claimed; it is heard once this is committed."""
    return select(_push()).where(among(can, TURN.c.job_id, "job_ids"))


def _push() -> Any:
    """Notifies of a turn's queue, on the channel of :mod:`batchmill.store.listening`."""
    channel = func.concat(word(CHANNEL_PREFIX), literal_column("tableoid"))
    return func.pg_notify(channel, TURN.c.queue)


def lock_turn(can: Capabilities) -> Executable:
    """One job's turn: next index, failed targets, token. Every writer locks it before the job."""
    query = select(TURN.c.next_idx, TURN.c.targets_failed, TURN.c.token)
    return locked(can, query.where(TURN.c.job_id == bindparam("job_id")), TURN)


def lock_free_turns(can: Capabilities) -> Executable:
    """Those turns of a list of jobs that nobody else has locked."""
    query = select(TURN.c.job_id).where(among(can, TURN.c.job_id, "job_ids"))
    return locked(can, query, TURN, skip=True)


def turns_of_jobs(can: Capabilities) -> Executable:
    """Which of a list of jobs have a turn, locked or not, and until when it is held."""
    return select(TURN.c.job_id, TURN.c.held_until).where(among(can, TURN.c.job_id, "job_ids"))


def lock_all_turns(can: Capabilities) -> Executable:
    """The whole rotation."""
    return locked(can, select(TURN.c.job_id).order_by(TURN.c.job_id), TURN)


def _its_job(can: Capabilities) -> Any:
    """The job of a turn, looked up by its id.

    Written so that only this way round can use an index: by statistics from a time when the
    rotation was empty, a planner would walk all kept jobs to look for the turn of each.
    """
    return looked_up(can, JOB.c.id, func.coalesce(TURN.c.job_id, word("")))


def _its_target(can: Capabilities, target: Any, idx: Any) -> Any:
    """The target of a turn at this index."""
    return and_(looked_up(can, target.c.job_id, TURN.c.job_id), target.c.idx == idx)


def _along(can: Capabilities, query: Any, index: str, *others: Any) -> Select[Any]:
    """The query, read along an index of the rotation and joined from there, by primary keys.

    Where a planner takes hints it needs these: by the statistics of a rotation that was empty
    it walks and locks everybody's turns, or sorts whole texts in a file of its own; where few jobs
    are kept it walks and locks these, and with them all turns that might be next.
    """
    along: Select[Any] = query
    if can.hints:
        along = along.prefix_with("STRAIGHT_JOIN").with_hint(TURN, f"FORCE INDEX ({index})")
        for table in others:
            along = along.with_hint(table, "FORCE INDEX (PRIMARY)")
    return along


def _with_target(columns: tuple[Any, ...], target: Any) -> Select[Any]:
    """The columns, then what a claim of ``target`` needs."""
    return select(  # pyright: ignore[reportReturnType] # one parameter in 2.0, many since 2.1
        TURN.c.job_id,
        *columns,
        JOB.c.caller,
        JOB.c.caller_class,
        target.c.url,
        target.c.options,
        target.c.attempt,
    )


def _pending_after(can: Capabilities) -> Any:
    """The index of the next pending target after one that has just finished."""
    pending = TARGET.alias("pending")
    after = next_pending(pending, TURN.c.job_id, pending.c.idx > TURN.c.next_idx)
    return case((among(can, TURN.c.token, "tokens"), after.scalar_subquery()))


def held_turns(can: Capabilities, locking: bool) -> Executable:
    """Everything that a runner has in flight, each with its job.

    Those of a list of tokens come with the target after them. Of the others that would be read in
    vain, however long its URL and options.
    """
    following = TARGET.alias("following")
    columns = (
        TURN.c.token,
        TURN.c.next_idx,
        TURN.c.targets_failed,
        TURN.c.busy_since,
        JOB.c.status,
        JOB.c.targets_total,
        JOB.c.created_at,
        TURN.c.home,
        following.c.idx,
        JOB.c.lease,
    )
    after = _its_target(can, following, _pending_after(can))
    joined = TURN.join(JOB, _its_job(can)).outerjoin(following, after)
    query = (
        _with_target(columns, following)
        .select_from(joined)
        .where(TURN.c.queue == bindparam("queue"), TURN.c.holder == bindparam("holder"))
        .order_by(TURN.c.turn, TURN.c.job_id)
    )
    along = _along(can, query, _ROTATION, JOB, following)
    return locked(can, along, TURN, JOB) if locking else along


def _open_to(can: Capabilities, shared: bool) -> Any:
    """Turns that a runner may take: its own and, with ``shared``, those without a home.

    SQLite is kept from the index of homes, which it would take where all are at one, and sort them.
    """
    home = func.coalesce(TURN.c.home, word("")) if can.lists == "json" else TURN.c.home
    mine = home == bindparam("runner_id")
    return or_(mine, TURN.c.home.is_(None)) if shared else mine


def claimable_turns(can: Capabilities, shared: bool, locking: bool) -> Executable:
    """The turns that are ready, lowest first, each with its job and its next target.

    The holder, which none of them has, is in the order too: PostgreSQL takes the index for sorted
    only by columns that are named or equal something, and would sort all that wait, each joined.
    MariaDB would sort for it, and lock them all.
    """
    places = (TURN.c.turn, TURN.c.job_id)
    turn = (TURN.c.next_idx, TURN.c.targets_failed, TURN.c.busy_since)
    columns = (*turn, JOB.c.status, JOB.c.lease)
    joined = TURN.join(JOB, _its_job(can)).join(TARGET, _its_target(can, TARGET, TURN.c.next_idx))
    query = (
        _with_target(columns, TARGET)
        .select_from(joined)
        .where(
            TURN.c.queue == bindparam("queue"),
            TURN.c.holder.is_(None),
            TURN.c.ready_at <= number("now_ms"),
            _open_to(can, shared),
        )
        .order_by(*(places if can.hints else (TURN.c.holder, *places)))
        .limit(number("want"))
    )
    along = _along(can, query, _ROTATION, JOB, TARGET)
    return locked(can, along, TURN, skip=True) if locking else along


def next_ready(can: Capabilities, shared: bool) -> Executable:
    """When the next waiting turn becomes ready, NULL when none waits."""
    return select(func.min(TURN.c.ready_at)).where(
        TURN.c.queue == bindparam("queue"), TURN.c.holder.is_(None), _open_to(can, shared)
    )


def write_turn(can: Capabilities, many: bool) -> Executable:
    """Write turns anew, each if its token is still the one that was read (NULL: not held)."""
    numbers = ("turn", "next_idx", "targets_failed", "ready_at", "busy_since", "held_until")
    texts = dict.fromkeys(("holder", "token"), Text)
    values = dict.fromkeys(numbers, BigInteger) | texts
    new = given(can, many, of_job=Text, old_token=Text, **values)
    its_turn = named_by(can, many, TURN.c.job_id, new["of_job"])
    written = update(TURN).where(its_turn, TURN.c.token.is_not_distinct_from(new["old_token"]))
    return written.values({name: new[name] for name in values})


def take_turn(can: Capabilities, many: bool) -> Executable:
    """Hold turns that nobody holds; their places and counts stay."""
    values = {"holder": Text, "token": Text, "held_until": BigInteger}
    new = given(can, many, of_job=Text, **values)
    return (
        update(TURN)
        .where(named_by(can, many, TURN.c.job_id, new["of_job"]), TURN.c.holder.is_(None))
        .values({name: new[name] for name in values})
    )


def move_turn(_: Capabilities) -> Executable:
    """Move a job on after the target whose turn it was has been stored by hand."""
    return (
        update(TURN)
        .where(TURN.c.job_id == bindparam("of_job"))
        .values(
            turn=number("turn"),
            next_idx=number("next_idx"),
            targets_failed=number("targets_failed"),
            ready_at=AT_ONCE,
            busy_since=null(),
        )
    )


def count_failed(_: Capabilities) -> Executable:
    """Set how many targets of a live job are stored failed."""
    return (
        update(TURN)
        .where(TURN.c.job_id == bindparam("of_job"))
        .values(targets_failed=number("targets_failed"))
    )


def release_turn(_: Capabilities) -> Executable:
    """Take a lapsed hold off a turn; ``busy_since`` survives while the target is the same."""
    busy_since = case((number("same_target") == 1, TURN.c.busy_since))
    return (
        update(TURN)
        .where(TURN.c.job_id == bindparam("of_job"), TURN.c.token == bindparam("old_token"))
        .values(
            turn=number("turn"),
            next_idx=number("next_idx"),
            targets_failed=number("targets_failed"),
            ready_at=AT_ONCE,
            busy_since=busy_since,
            holder=null(),
            token=null(),
            held_until=null(),
        )
    )


def current_holds(can: Capabilities) -> Executable:
    """Which of a list of tokens a runner still holds, with their jobs."""
    query = (
        select(TURN.c.token, TURN.c.job_id, JOB.c.status)
        .select_from(TURN.join(JOB, _its_job(can)))
        .where(among(can, TURN.c.token, "tokens"), TURN.c.holder == bindparam("holder"))
        .order_by(TURN.c.job_id)
    )
    along = _along(can, query, _ROTATION, JOB)
    return locked(can, along, TURN, JOB)


def renew_holds(can: Capabilities) -> Executable:
    """Let the holds on a list of jobs, all of which are locked, last until a later time."""
    renewed = update(TURN).where(among(can, TURN.c.job_id, "job_ids"))
    return renewed.values(held_until=number("held_until"))


def _home_is_lost() -> Any:
    """The home of a turn is lost, or has left."""
    seen = select(RUNNER.c.id).where(RUNNER.c.id == TURN.c.home, lost_from() > number("now_ms"))
    return and_(TURN.c.home.is_not(None), ~seen.exists())


def _is_lost() -> Any:
    """The hold on a turn lapsed, or its home is gone."""
    return or_(TURN.c.held_until <= number("now_ms"), _home_is_lost())


def first_lost_turn(_: Capabilities) -> Executable:
    """A row if any turn is lost."""
    return select(TURN.c.job_id).where(_is_lost()).limit(1)


def lost_turns(can: Capabilities) -> Executable:
    """Turns that their runner has lost: a hold that lapsed, or a home that is gone."""
    joined, home_lost = TURN.join(JOB, _its_job(can)), _home_is_lost()
    query = (
        select(
            TURN.c.job_id,
            TURN.c.token,
            TURN.c.next_idx,
            TURN.c.targets_failed,
            home_lost.label("home_lost"),
            JOB.c.status,
            JOB.c.targets_total,
            JOB.c.created_at,
            TARGET.c.lost,
        )
        .select_from(joined.outerjoin(TARGET, _its_target(can, TARGET, TURN.c.next_idx)))
        .where(_is_lost())
        .order_by(TURN.c.turn, TURN.c.job_id)
        .limit(number("limit"))
    )
    return locked(can, query, TURN, JOB, skip=True)


def delete_turns(can: Capabilities) -> Executable:
    """Take a list of jobs out of the rotation."""
    return delete(TURN).where(among(can, TURN.c.job_id, "job_ids"))


def delete_all_turns(_: Capabilities) -> Executable:
    """Empty the rotation."""
    return delete(TURN)
