"""The runner and the memory store need nothing but Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SRC = Path(__file__).parents[2] / "src"

PROGRAM = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"sqlalchemy", "alembic", "greenlet"}:
            raise ImportError(f"{name} is blocked")
        return None

sys.meta_path.insert(0, Blocked())
for name in ("sqlalchemy", "alembic"):
    try:
        __import__(name)
    except ImportError:
        continue
    raise SystemExit(f"{name} could be imported")

from dataclasses import dataclass
from batchmill import Result, RetryLater, Runner, Target, TargetError
from batchmill.testing import MemoryStore

@dataclass
class User:
    name: str

def fetch(context, caller, target):
    if target.url == "bad":
        raise TargetError("not there")
    return Result(target.url.upper(), meta=target.options)

with Runner(MemoryStore(), fetch) as runner:
    job = runner.submit(User("anna"), ["a", "bad", Target("c", {"x": 1})])
    print(runner.wait(job.job_id, timeout=10).status)
    for report in runner.results(job.job_id):
        print(report.idx, report.status, report.result and report.result.content, report.error)
"""


def test_a_whole_job_runs_without_sqlalchemy():
    """A job on MemoryStore, submit to results, with sqlalchemy blocked from importing."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, "PYTHONPATH": str(SRC)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "partial",
        "0 done A ",
        "1 failed None not there",
        "2 done C ",
    ]
