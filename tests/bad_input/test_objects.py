"""What configuration, records and engines answer to odd input is what the table says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from batchmill import Hooks, Options, Runner, RunnerConfig, Target
from batchmill.runner import FetchContext
from batchmill.store import BatchRepository, create_store_engine, migrate
from batchmill.testing import MemoryStore
from tests.bad_input.calls import answer_of, documented, fits
from tests.bad_input.rules import TAKEN
from tests.bad_input.runners import DATABASE, OBJECTS, RUNNER
from tests.bad_input.stores import Table
from tests.bad_input.values import KINDS

HERE = OBJECTS | {"Runner": RUNNER["Runner"]}


def cases(table: Table) -> list[tuple[str, str]]:
    """Each argument of each call."""
    return [(method, name) for method, arguments in table.items() for name in arguments]


def cancelled_context() -> FetchContext:
    """One whose wait ends at once."""
    context = FetchContext("job", 0, 1, threading.Condition())
    context.cancel()
    return context


MAKE: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "RunnerConfig": (RunnerConfig, {"worker_limit": 9, "ttl": timedelta(1)}),
    "Hooks": (Hooks, {}),
    "Target": (Target, {"url": "u"}),
    "Options": (Options, {}),
    "FetchContext.wait": (lambda **given: cancelled_context().wait(**given), {}),
    "Runner": (Runner, {"store": MemoryStore(), "fetch": print}),
}


def problems(call: Callable[..., Any], table: Table, method: str, name: str) -> list[str]:
    """Give the argument each value; what ended otherwise than documented."""
    wrong = []
    for kind, values in KINDS.items():
        outcome = table[method][name].of(kind)
        for value in values:
            text, _ = answer_of(lambda value=value: call(**{name: value}))  # type: ignore[misc]
            end = text if outcome == TAKEN else documented(outcome, name)
            if not fits(text, end) or (text != TAKEN and outcome == TAKEN):
                wrong.append(f"{kind}: {text}, not: {outcome}")
    return wrong


@pytest.mark.parametrize(("method", "name"), cases(HERE))
def test_every_value_for_an_object(method: str, name: str) -> None:
    """Each kind of value ends as documented, when the object is made and not later."""
    make, arguments = MAKE[method]
    wrong = problems(lambda **given: make(**(arguments | given)), HERE, method, name)
    assert not wrong, "\n".join(wrong[:6])


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """A migrated file."""
    engine = create_store_engine(f"sqlite:///{tmp_path / 'batchmill.db'}")
    migrate.upgrade(engine)
    yield engine
    engine.dispose()


def database_call(engine: Engine, method: str) -> tuple[Callable[..., Any], dict[str, Any]]:
    """A function of the database's, and arguments that work."""
    url, bind = "sqlite://", {"engine_or_connection": engine}
    head = {"revision": "head"} if method in {"migrate.downgrade", "migrate.stamp"} else {}
    if method.startswith("migrate."):
        function = getattr(migrate, method.removeprefix("migrate."))
        return function, {"url": url} if method == "migrate.sql" else bind | head
    return {
        "create_store_engine": (create_store_engine, {"url": url}),
        "BatchRepository": (BatchRepository, {"engine": engine}),
        "bound_to": (BatchRepository(engine).bound_to, {}),
    }[method]


@pytest.mark.parametrize(("method", "name"), cases(DATABASE))
def test_every_value_for_a_database(engine: Engine, method: str, name: str) -> None:
    """Each kind of value ends as documented; the database stays as it is."""
    call, arguments = database_call(engine, method)
    before = migrate.current(engine)
    wrong = problems(lambda **given: call(**(arguments | given)), DATABASE, method, name)
    assert not wrong, "\n".join(wrong[:6])
    assert migrate.current(engine) == before
