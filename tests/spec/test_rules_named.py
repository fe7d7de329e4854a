"""Every numbered rule of both seeds has a test that names it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

RULES = {"seed-000": set(range(1, 9)), "seed-001": set(range(1, 9))}


def named_rules(seed: str) -> set[int]:
    """The rules that the docstrings of this folder's tests name."""
    files = Path(__file__).parent.glob(f"test_{seed.replace('-', '_')}*.py")
    docstrings = [
        ast.get_docstring(node) or ""
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    return {
        int(number)
        for docstring in docstrings
        for number in re.findall(rf"^spec/{seed}, rule (\d+):", docstring)
    }


@pytest.mark.parametrize("seed", sorted(RULES))
def test_every_rule_is_named(seed: str) -> None:
    """Each rule of the seed is named by at least one test, and no test names another."""
    assert named_rules(seed) == RULES[seed]
