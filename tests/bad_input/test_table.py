"""The table is whole, and the committed page is what it says."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import pytest

from batchmill import Hooks, Options, Runner, RunnerConfig, Target
from batchmill.records import BatchJob, BatchTarget, Limits, Outcome
from batchmill.runner import FetchContext
from batchmill.store import BatchRepository, create_store_engine, migrate
from batchmill.testing import MemoryStore
from tests.bad_input.page import PAGE, render, rules
from tests.bad_input.runners import DATABASE, OBJECTS, RUNNER
from tests.bad_input.stores import JOB_STORE, REPOSITORY
from tests.bad_input.values import KINDS

OF_AN_ENVIRONMENT = {"include_name", "environment_options", "locked"} | {
    "check_place",
    "table_names",
}
"""Functions of ``migrate`` that an env.py or the command calls, not an application."""
PARTS = {"token", "target"}
"""Names in the table for one of a list."""
WITHOUT_ONE_OF_THESE = {"engine_kwargs"}
"""What goes to SQLAlchemy as it is."""


def arguments(function: Any) -> set[str]:
    """The names of a function's parameters."""
    return set(inspect.signature(function).parameters) - {"self"} - WITHOUT_ONE_OF_THESE


def named(table: dict[str, Any]) -> set[str]:
    """The arguments in the table, fields of them aside."""
    return {name for name in table if "." not in name} - PARTS


def methods(kind: type) -> dict[str, Any]:
    """A class's public methods."""
    return {
        name: method
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }


@pytest.mark.parametrize("kind", [MemoryStore, BatchRepository])
def test_every_method_of_a_store_is_in_the_table(kind: type) -> None:
    """Each public method with each of its arguments."""
    listed = REPOSITORY | JOB_STORE
    found = {name: m for name, m in methods(kind).items() if name != "bound_to"}
    assert {name: named(listed[name]) for name in found} == {
        name: arguments(method) for name, method in found.items()
    }
    assert set(found) == set(listed)


def test_every_method_of_a_runner_is_in_the_table() -> None:
    """Each public method with each of its arguments, and its constructor's."""
    listed = {name: named(table) for name, table in RUNNER.items() if name != "Runner"}
    assert listed == {name: arguments(method) for name, method in methods(Runner).items()}
    assert set(RUNNER["Runner"]) == arguments(Runner.__init__)


def test_every_function_of_a_database_is_in_the_table() -> None:
    """Engines and migrations; those that Alembic calls from an env.py are left out."""
    public = {
        f"migrate.{name}": function
        for name, function in inspect.getmembers(migrate, inspect.isfunction)
        if function.__module__ == migrate.__name__
        and not name.startswith("_")
        and name not in OF_AN_ENVIRONMENT
    }
    public |= {
        "create_store_engine": create_store_engine,
        "BatchRepository": BatchRepository.__init__,
        "bound_to": BatchRepository.bound_to,
    }
    listed = {name: set(table) for name, table in DATABASE.items()}
    assert listed == {name: arguments(function) for name, function in public.items()}


def test_every_field_is_in_the_table() -> None:
    """The fields of records, configuration, hooks and options."""

    def fields(kind: Any) -> set[str]:
        return {each.name for each in dataclasses.fields(kind)}

    assert fields(RunnerConfig) == set(OBJECTS["RunnerConfig"])
    assert fields(Hooks) == set(OBJECTS["Hooks"])
    assert fields(Options) == set(OBJECTS["Options"])
    assert arguments(Target.__init__) == set(OBJECTS["Target"])
    assert arguments(FetchContext.wait) == set(OBJECTS["FetchContext.wait"])
    submit = JOB_STORE["submit_job"]
    for table, head, kind in [
        (REPOSITORY["create_job"], "job", BatchJob),
        (REPOSITORY["put_targets"], "target", BatchTarget),
        (submit, "job", BatchJob),
        (submit, "target", BatchTarget),
        (submit, "limits", Limits),
        (JOB_STORE["exchange"], "outcome", Outcome),
    ]:
        listed = {name.partition(".")[2] for name in table if name.startswith(f"{head}.")}
        assert listed == fields(kind), head


def test_a_rule_names_known_values() -> None:
    """No outcome of a rule is of a kind of value that isn't tried."""
    for rule in rules().values():
        assert set(rule.outcomes) <= set(KINDS), rule.name


@pytest.mark.checkout
def test_the_page_is_what_the_table_says() -> None:
    """docs/bad-input.md is up to date; ``python -m tests.bad_input.page`` writes it."""
    assert PAGE.read_text(encoding="utf-8") == render()
