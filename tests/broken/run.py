"""Run the contract over every broken store of a group, and print what became of each as JSON.

``python -m tests.broken.run fences``; a process of its own, since pytest runs in it many times.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from batchmill.errors import BatchmillError
from tests.broken.registry import Broken

SUITE = Path(__file__).with_name("suite.py")
OPTIONS = ["-x", "-q", "--no-header", "--tb=no", "-o", "addopts=", "--import-mode=importlib"]
PLUGINS = [
    "-p",
    "no:randomly",
    "-p",
    "no:xdist",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:hypothesispytest",
]
CONTRADICTIONS = (AssertionError, pytest.fail.Exception, BatchmillError)
"""How a test says that a store broke the contract; anything else is a mistake in this folder."""


class Run:
    """A plugin: gives the store to the suite, and notes the first test that failed."""

    def __init__(self, broken: Broken, folder: Path) -> None:
        self.broken, self.folder = broken, folder
        self.caught_by = ""
        self.mistake = ""
        self.passed = 0

    @pytest.fixture
    def broken_store(self) -> Iterator[Any]:
        with self.broken.make(self.folder) as store:
            yield store

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
        report = yield
        self.passed += report.passed and report.when == "call"
        if report.failed and not self.caught_by:
            self.caught_by = f"{item.cls.__name__.removeprefix('Test')}.{item.name}"
            if not call.excinfo.errisinstance(CONTRADICTIONS):
                self.mistake = repr(call.excinfo.value)
        return report


def run(broken: Broken, folder: Path) -> dict[str, Any]:
    """Try the parts that ought to catch it, then all of them."""
    last = Run(broken, folder)
    first = [f"{SUITE}::Test{part}" for part in broken.parts]
    for where in ([first] if first else []) + [[str(SUITE)]]:
        last = Run(broken, folder)
        pytest.main([*OPTIONS, *PLUGINS, *where], plugins=[last])
        if last.caught_by:
            break
    return {
        "fault": broken.fault,
        "caught_by": last.caught_by,
        "mistake": last.mistake,
        "passed": last.passed,
    }


def main(group: str) -> None:
    """Print one line of JSON, the last of the output."""
    stores: list[Broken] = importlib.import_module(f"tests.broken.{group}").STORES
    with tempfile.TemporaryDirectory() as folder:
        found = [run(broken, Path(folder)) for broken in stores]
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
