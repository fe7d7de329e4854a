"""Every case that can occur here has a test that names its row."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
PLAIN = (1, 3, 5, 6, 8, 9, 10, 11, 14, 16, 17, 18, 19, 20, 21, 22, 25, 27, 29, 30, 31)
ASYNC = (4, 15)
"""Of the rows S1 to S22, those that need an async store, as row 2 does."""
ROWS = [*map(str, PLAIN), "9b", *(f"S{number}" for number in range(1, 23) if number not in ASYNC)]


def all_tests() -> Iterator[tuple[str, str]]:
    """Name and docstring of every test."""
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield node.name, ast.get_docstring(node) or ""


def rows_of(name: str, docstring: str) -> set[str]:
    """The rows that a test names: ``test_case_s3_…``, or "cases.md 5, 21 and 22"."""
    found = {match.upper() for match in re.findall(r"^test_case_(s?\d+)_", name)}
    found |= {f"{match}b" for match in re.findall(r"^test_case_(\d+)b_", name)}
    for listed in re.findall(r"cases\.md ((?:S?\d+b?(?:, | and )?)+)", docstring):
        found |= set(re.findall(r"S?\d+b?", listed))
    return found


def test_every_case_is_named() -> None:
    """Each row of the field's cases that can occur here is some test's."""
    named = set().union(*(rows_of(*test) for test in all_tests()))
    assert [row for row in ROWS if row not in named] == []
