"""A suite that can fail: the public contract catches every store that is broken on purpose."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.broken.registry import Broken
from tests.support.tables import print_later

TOP = Path(__file__).parents[2]
GROUPS = ["fences", "counting", "expiring", "rotating", "in_sql"]


def tried(group: str) -> list[dict[str, Any]]:
    """What became of each store of a group, from a process of its own."""
    environment = {key: value for key, value in os.environ.items() if "PYTEST" not in key}
    done = subprocess.run(
        [sys.executable, "-m", "tests.broken.run", group],
        cwd=TOP,
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.timeout(600)
@pytest.mark.parametrize("group", GROUPS)
def test_no_broken_store_survives(group: str) -> None:
    """The contract has a test that fails for each of them, and fails by an assertion."""
    found = tried(group)
    print_later(
        f"broken stores ({group}): caught by",
        [f"{each['fault']:45} {each['caught_by'] or 'NOTHING'}" for each in found],
    )
    assert [each["fault"] for each in found if not each["caught_by"]] == []
    assert [(each["fault"], each["mistake"]) for each in found if each["mistake"]] == []


@pytest.mark.timeout(600)
def test_a_store_that_is_not_broken_survives() -> None:
    """What catches the broken ones is their fault: the same run leaves MemoryStore alone."""
    (found,) = tried("intact")
    assert (found["caught_by"], found["mistake"]) == ("", "")
    assert found["passed"] > 500


def test_every_fault_is_another() -> None:
    """Each broken store has a fault and a name of its own, and there are enough of them."""
    stores: list[Broken] = [
        broken
        for group in GROUPS
        for broken in importlib.import_module(f"tests.broken.{group}").STORES
    ]
    assert len({broken.fault for broken in stores}) == len(stores) >= 14
    assert all(broken.parts for broken in stores)
