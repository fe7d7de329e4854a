"""The house rules that no linter knows: sizes, and what tests say about themselves."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TOP = Path(__file__).parents[2]
FUNCTION_LINES = 30
FILE_LINES = 350
MACHINE_PATHS = re.compile(r"/(root|home/\w+|work|Users)/")

pytestmark = pytest.mark.checkout

Function = ast.FunctionDef | ast.AsyncFunctionDef


def python_files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((TOP / folder).rglob("*.py"))


def functions(path: Path) -> Iterator[Function]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, Function):
            yield node


def lines_of_code(function: Function) -> int:
    """The lines of its body, without docstrings and inner functions."""
    lines: set[int] = set()
    for statement in function.body:
        lines |= lines_of(statement)
    for node in ast.walk(function):
        inner = isinstance(node, Function) and node is not function
        if inner or (isinstance(node, ast.Expr) and is_text(node.value)):
            lines -= lines_of(node)
    return len(lines)


def lines_of(node: Any) -> set[int]:
    return set(range(node.lineno, node.end_lineno + 1))


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_functions_are_short() -> None:
    """No function that ships has more than thirty lines of code."""
    long = [
        f"{path.relative_to(TOP)}:{f.lineno} {f.name}: {lines_of_code(f)}"
        for path in python_files("src", "migrations")
        for f in functions(path)
        # A revision lists the columns of its table, which no cutting makes clearer.
        if path.parent.name != "versions" and lines_of_code(f) > FUNCTION_LINES
    ]
    assert long == []


def test_files_are_short() -> None:
    """No file that ships has more than 350 lines."""
    counts = {p: len(p.read_text().splitlines()) for p in python_files("src", "migrations")}
    assert {str(p.relative_to(TOP)): n for p, n in counts.items() if n > FILE_LINES} == {}


def test_every_test_says_what_it_shows() -> None:
    """Every test has a docstring."""
    silent = [
        f"{path.relative_to(TOP)}:{f.lineno} {f.name}"
        for path in python_files("tests", "src/batchmill/testing")
        for f in functions(path)
        if f.name.startswith("test_") and not ast.get_docstring(f)
    ]
    assert silent == []


def test_no_path_of_a_machine() -> None:
    """No file names a folder of the machine that it was written on."""
    named = [
        str(path.relative_to(TOP))
        for path in [
            *python_files("src", "migrations", "tests", "benchmarks", "examples"),
            *TOP.glob("*.md"),
        ]
        if path != Path(__file__) and MACHINE_PATHS.search(path.read_text())
    ]
    assert named == []


def test_revisions_stand_by_themselves() -> None:
    """A revision imports nothing of batchmill, so that later code can't change it."""
    for path in python_files("migrations/versions"):
        assert "batchmill." not in "".join(
            ast.unparse(n) for n in ast.parse(path.read_text()).body if is_import(n)
        )


def is_import(node: ast.AST) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)
