"""docs/guarantees.md names tests that exist, and proves every promise by at least one."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.checkout

TOP = Path(__file__).parents[2]
PAGE = TOP / "docs" / "guarantees.md"
TEXT = PAGE.read_text(encoding="utf-8")
PROMISES = re.split(r"^### ", TEXT, flags=re.MULTILINE)[1:]
"""Each promise: its title, what is promised, its limits, what proves it."""
NAMED = re.findall(r"^- `(\S+::\S+)`$", TEXT, re.MULTILINE)


@cache
def names_in(path: Path) -> set[str]:
    """The names of a file's tests, those of a class with the class before them."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        before = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        names |= {
            f"{before}{each.name}"
            for each in inner
            if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")
        }
    return names


def exists(name: str) -> bool:
    """Whether there is a test of this name; parameters in brackets aside."""
    file, _, test = name.partition("::")
    path = TOP / file
    return path.is_file() and test.partition("[")[0] in names_in(path)


@pytest.mark.parametrize("promise", PROMISES, ids=[each.partition("\n")[0] for each in PROMISES])
def test_every_promise_is_proved(promise: str) -> None:
    """A promise says what it promises and names at least one test; each is there, and once."""
    title, _, rest = promise.partition("\n")
    said, proved, names = rest.partition("Proved by:\n")
    assert proved, f"{title}: nothing proves it"
    assert said.strip(), f"{title}: nothing is promised"
    listed = re.findall(r"^- `(\S+)`$", names, re.MULTILINE)
    assert listed
    assert [name for name in listed if not exists(name)] == []
    assert len(listed) == len(set(listed))


def test_nothing_is_named_out_of_place() -> None:
    """Every line with a test's name is one that is looked for."""
    lines = [line for line in TEXT.splitlines() if "::test_" in line]
    assert len(lines) == len(NAMED)


def test_no_name_is_found_that_is_not_there() -> None:
    """The check itself sees a file, a class or a test that is missing."""
    assert exists("tests/docs/test_guarantees.py::test_every_promise_is_proved[any]")
    assert not exists("tests/docs/test_guarantees.py::test_that_is_not_there")
    assert not exists("tests/docs/test_no_file.py::test_every_promise_is_proved")
    assert not exists("tests/contract/test_memory.py::TestNothing::test_the_clock_can_be_given")


def test_every_kind_of_proof_is_used() -> None:
    """Each folder of tests that tries to break the store proves something on the page."""
    folders = {name.split("/")[1] for name in NAMED if name.startswith("tests/")}
    trying = {"bad_input", "broken", "cases", "faults", "kill", "model", "races", "soak"}
    assert folders >= trying


def test_readme_leads_here() -> None:
    """README's promises name this page."""
    assert "docs/guarantees.md" in (TOP / "README.md").read_text(encoding="utf-8")
