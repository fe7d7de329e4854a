"""How long the imports take over Python's own start."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from time import perf_counter

from benchmarks.context import Context

EACH = 5
"""Starts of each kind a round; they alternate."""
STATEMENTS = {
    "pass": "pass",
    "batchmill": "import batchmill",
    "runner": "import batchmill.runner",
}


def measure(context: Context) -> None:
    """Milliseconds over the start of an interpreter that imports nothing of it.

    The first start isn't counted: it compiles what has changed, as pip does when it installs.
    """
    for statement in STATEMENTS.values():
        _seconds(statement)
    for number in range(context.rounds):
        context.say(f"imports, round {number + 1} of {context.rounds}")
        found: dict[str, list[float]] = {name: [] for name in STATEMENTS}
        for _ in range(EACH):
            for name, statement in STATEMENTS.items():
                found[name].append(_seconds(statement))
        bare = statistics.median(found["pass"])
        for name in ("batchmill", "runner"):
            own = statistics.median(found[name])
            context.report.value(f"imports-{name}", (own - bare) * 1000)


def _seconds(statement: str) -> float:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    begun = perf_counter()
    subprocess.run([sys.executable, "-P", "-c", statement], check=True, env=environment)
    return perf_counter() - begun
