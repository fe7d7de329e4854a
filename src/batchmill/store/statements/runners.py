"""Statements on ``batch_runner``: which runners are alive."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Executable, and_, bindparam, delete, insert, select, update

from batchmill.store.capabilities import Capabilities
from batchmill.store.statements.common import RUNNER, TURN, lost_from, number


def see_runner(_: Capabilities) -> Executable:
    """Note that a known runner is alive."""
    return (
        update(RUNNER)
        .where(RUNNER.c.id == bindparam("runner_id"))
        .values(seen_at=number("seen_at"), hold_for=number("hold_for"))
    )


def see_submitter(_: Capabilities) -> Executable:
    """Note that a known runner is alive, leaving alone what it holds for."""
    return (
        update(RUNNER)
        .where(RUNNER.c.id == bindparam("runner_id"))
        .values(seen_at=number("seen_at"))
    )


def note_runner(_: Capabilities, holds: bool) -> Executable:
    """Note that a runner is alive, known or not; unless it ``holds``, how long is left alone."""
    from sqlalchemy.dialects import postgresql

    names = ("id", "seen_at", "hold_for")
    new = postgresql.insert(RUNNER).values({name: bindparam(name) for name in names})
    changed = ("seen_at", "hold_for") if holds else ("seen_at",)
    anew = {name: new.excluded[name] for name in changed}
    return new.on_conflict_do_update(index_elements=[RUNNER.c.id], set_=anew)


def insert_runner(_: Capabilities) -> Executable:
    """Note a runner for the first time."""
    names = ("id", "seen_at", "hold_for")
    return insert(RUNNER).values({name: bindparam(name) for name in names})


def forget_runner(_: Capabilities) -> Executable:
    """Forget one runner."""
    return delete(RUNNER).where(RUNNER.c.id == bindparam("runner_id"))


def _is_lost() -> ColumnElement[bool]:
    """The runner was not seen for long and has no local job left."""
    at_home = select(TURN.c.job_id).where(TURN.c.home == RUNNER.c.id).exists()
    return and_(lost_from() <= number("now_ms"), ~at_home)


def first_lost_runner(_: Capabilities) -> Executable:
    """A row if any runner is to be forgotten."""
    return select(RUNNER.c.id).where(_is_lost()).limit(1)


def forget_lost_runners(_: Capabilities) -> Executable:
    """Forget the runners that are lost."""
    return delete(RUNNER).where(_is_lost())
