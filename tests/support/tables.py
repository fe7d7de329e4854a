"""Tables that tests print at the end of a run, also when it is quiet and its output captured.

The conftest of all tests hands ``pytest_terminal_summary`` on to :func:`summarise`; a folder that
prints imports the fixture ``tables``. Under pytest-xdist the lines come from the workers with the
reports of their tests.
"""

from __future__ import annotations

from typing import Any

import pytest

_KEY = "table"
_SHOWN = pytest.StashKey[bool]()


def print_later(title: str, lines: list[str]) -> None:
    """Show this table at the end of the run; called in a test."""
    _current.append((_KEY, [title, *lines]))


_current: list[tuple[str, Any]] = []


@pytest.fixture(autouse=True)
def tables(request: pytest.FixtureRequest):
    """Hands the tables of a test over to its report."""
    _current.clear()
    yield
    request.node.user_properties.extend(_current)
    _current.clear()


def summarise(terminalreporter: Any) -> None:
    """Print every table of the run, once, however many folders ask for it."""
    if terminalreporter.config.stash.setdefault(_SHOWN, False):
        return
    terminalreporter.config.stash[_SHOWN] = True
    for reports in list(terminalreporter.stats.values()):
        for report in reports:
            if getattr(report, "when", "") != "teardown":
                continue
            for key, lines in getattr(report, "user_properties", ()):
                if key == _KEY:
                    terminalreporter.section(lines[0])
                    for line in lines[1:]:
                        terminalreporter.write_line(line)
