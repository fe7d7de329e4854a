"""Which rows a statement locks on databases that lock rows, and whether it waits for them."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from batchmill.store import BatchRepository, create_store_engine
from batchmill.store.statements import common, jobs, runners, targets, totals, turns
from batchmill.store.transactions import Compiler
from tests.store.support import HOUR, done, exchange, submit

WAITS = "FOR UPDATE OF {}"
SKIPS = "FOR UPDATE OF {} SKIP LOCKED"
LOCKS = {
    ("lock_turn",): WAITS.format("batch_turn"),
    ("lock_all_turns",): WAITS.format("batch_turn"),
    ("lock_free_turns",): SKIPS.format("batch_turn"),
    ("held_turns", True): WAITS.format("batch_turn, batch_job"),
    ("claimable_turns", False, True): SKIPS.format("batch_turn"),
    ("claimable_turns", True, True): SKIPS.format("batch_turn"),
    ("current_holds",): WAITS.format("batch_turn, batch_job"),
    ("lost_turns",): SKIPS.format("batch_turn, batch_job"),
    ("lock_job",): WAITS.format("batch_job"),
    ("bytes_of_job",): WAITS.format("batch_job"),
    ("lock_expired",): SKIPS.format("batch_job"),
    ("lock_ended",): SKIPS.format("batch_job"),
    ("lock_caps",): WAITS.format("batch_total"),
    ("lock_evictions", False): WAITS.format("batch_total"),
    ("lock_evictions", True): SKIPS.format("batch_total"),
}
"""By name and variant: a turn is locked before its job, a total after both."""
READ_ANEW = {("job_by_key", True), ("count_live", False, True), ("count_live", True, True)}
"""Plain reads elsewhere; where a transaction may see an old state, they read with a shared lock."""
CLAUSE = re.compile(r"FOR UPDATE.*|FOR SHARE.*|LOCK IN SHARE MODE.*")


def _builders() -> Iterator[Callable[..., Any]]:
    for module in (jobs, runners, targets, totals, turns):
        for name, build in vars(module).items():
            own = isinstance(build, types.FunctionType) and build.__module__ == module.__name__
            if own and not name.startswith("_") and name not in vars(common):
                yield build


def _locks(url: str) -> dict[tuple[Any, ...], str]:
    """The locking clause of each variant of each statement that has one."""
    compiler, found = Compiler(create_store_engine(url)), {}
    for build in _builders():
        if build.__name__ == "note_runner" and not compiler.can.upserts:
            continue
        flags = len(inspect.signature(build).parameters) - 1
        for number in range(2**flags):
            variant = tuple(bool(number >> bit & 1) for bit in range(flags))
            clause = CLAUSE.search(compiler.compiled(build, variant).text)
            if clause is not None:
                found[build.__name__, *variant] = clause.group()
    return found


def test_postgresql_locks_the_rows_that_decide() -> None:
    """Each lock names its tables, and what others work on is skipped where it can wait."""
    assert _locks("postgresql://host/name") == LOCKS


def test_mariadb_locks_as_postgresql_and_reads_anew() -> None:
    """The same locks without names of tables, and shared ones where a plain read may be stale."""
    same = {key: re.sub(r" OF batch_\w+(, batch_\w+)*", "", lock) for key, lock in LOCKS.items()}
    shared = dict.fromkeys(READ_ANEW, "LOCK IN SHARE MODE")
    assert _locks("mariadb://host/name") == same | shared


@pytest.mark.parametrize(
    ("name", "variant"), [(key[0], key[1:]) for key in [*LOCKS, *sorted(READ_ANEW)]]
)
def test_sqlite_has_no_row_locks(name: str, variant: tuple[bool, ...]) -> None:
    """The write lock is the whole file's."""
    build = next(each for each in _builders() if each.__name__ == name)
    compiled = Compiler(create_store_engine("sqlite://")).compiled(build, variant)
    assert CLAUSE.search(compiled.text) is None


@pytest.fixture
def asked(store: BatchRepository, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Makes a call, and answers which variants of a statement it ran."""
    ran: list[tuple[str, tuple[Any, ...]]] = []
    compiled = Compiler.compiled

    def spy(self: Compiler, build: Callable[..., Any], variant: tuple[Any, ...]) -> Any:
        ran.append((build.__name__, variant))
        return compiled(self, build, variant)

    monkeypatch.setattr(Compiler, "compiled", spy)

    def ask(name: str, call: Callable[[], Any]) -> list[tuple[Any, ...]]:
        ran.clear()
        call()
        return [variant for each, variant in ran if each == name]

    return ask


def test_an_idle_runner_locks_nothing(store: BatchRepository, asked: Callable[..., Any]) -> None:
    """An exchange with nothing to store and nothing to claim only reads."""
    assert asked("claimable_turns", lambda: exchange(store)) == [(True, False)]
    assert asked("held_turns", lambda: exchange(store)) == [(False,)]


def test_a_busy_runner_locks_what_it_decides_on(
    store: BatchRepository, asked: Callable[..., Any]
) -> None:
    """An exchange that stores or claims reads both what it holds and what is open under a lock."""
    submit(store, "a", 3)
    claimed = exchange(store).claims
    call = partial(exchange, store, [done(claim) for claim in claimed])
    assert asked("held_turns", call) == [(True,)]
    submit(BatchRepository(store.engine), "b")
    assert asked("claimable_turns", lambda: exchange(store)) == [(True, False), (True, True)]


def test_what_was_just_submitted_is_claimed_without_a_look(
    store: BatchRepository, asked: Callable[..., Any]
) -> None:
    """The first exchange after a submit of the same store's to the queue doesn't look before."""
    submit(store, "a")
    assert asked("claimable_turns", lambda: exchange(store, queue="other")) == [(True, False)]
    assert asked("claimable_turns", lambda: exchange(store)) == [(True, True)]
    assert asked("claimable_turns", lambda: exchange(store)) == [(True, False)]


def test_a_submit_reads_what_is_current(store: BatchRepository, asked: Callable[..., Any]) -> None:
    """The lookup and the caps see what has been committed by then; other reads lock nothing."""
    assert asked("job_by_key", lambda: submit(store, "a")) == [(True,)]
    assert asked("count_live", lambda: submit(store, "b")) == [(True, True), (False, True)]
    find = partial(store.find_job_by_idem_key, "c", "key-a", now=100, ttl=HOUR)
    assert asked("job_by_key", find) == [(False,)]
    assert asked("count_live", store.count_live_jobs) == [(False, False)]
    assert asked("count_live", lambda: store.count_live_jobs("c")) == [(True, False)]
