"""What only a process of its own can show: the end of an interpreter, a fork, and imports."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"

PRELUDE = """
import os, signal, sys, threading, time
from dataclasses import dataclass
from batchmill.runner import Result, Runner, RunnerConfig
from batchmill.testing import MemoryStore

@dataclass
class User:
    name: str

# The jobs that a shell runs in the background ignore it, and so would their children.
signal.signal(signal.SIGINT, signal.default_int_handler)
started = threading.Event()

def block(context, caller, target):
    started.set()
    time.sleep(60)
    return Result("late")

def quick(context, caller, target):
    return Result("x")

store = MemoryStore()
left = store.leave
store.leave = lambda runner_id: (print("left", flush=True), left(runner_id))
"""


def python(code: str, *, prelude: str = PRELUDE) -> subprocess.Popen[str]:
    """Start an interpreter of its own on this code."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", prelude + textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SRC)},
    )


def ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What it printed; it has to end by itself, soon."""
    with process:
        return process.communicate(timeout=20)


def test_an_interpreter_exits_cleanly_although_close_was_never_called():
    """Exit code 0, no traceback, and the target that blocked is put back (cases.md S14)."""
    process = python("""
        runner = Runner(store, block).start()
        job = runner.submit(User("a"), ["u"])
        assert started.wait(10)
        import atexit
        atexit._run_exitfuncs()
        print(runner.status(job.job_id).targets[0].status)
    """)
    out, err = ended(process)
    assert (process.returncode, err) == (0, "")
    assert out.splitlines() == ["left", "pending"]


def test_an_idle_runner_does_not_keep_the_interpreter_alive():
    """The main thread ends, the process ends, and the runner has left in order."""
    process = python("""
        runner = Runner(store, quick).start()
        runner.wait(runner.submit(User("a"), ["u"]).job_id, 10)
    """)
    assert ended(process) == ("left\n", "")
    assert process.returncode == 0


def test_ctrl_c_ends_a_program_whose_fetch_blocks():
    """Only the application's own KeyboardInterrupt is shown (cases.md S14)."""
    process = python("""
        runner = Runner(store, block).start()
        job = runner.submit(User("a"), ["u"])
        started.wait(10)
        print("ready", flush=True)
        runner.wait(job.job_id)
    """)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    out, err = ended(process)
    assert out == "left\n"
    assert err.count("Traceback") == 1
    assert err.rstrip().endswith("KeyboardInterrupt")


def test_a_forked_child_does_not_run_its_parents_runner():
    """It may neither submit nor close for it, and exits without waiting (cases.md S3)."""
    process = python("""
        from batchmill.errors import RunnerClosed
        runner = Runner(store, quick).start()
        import warnings; warnings.simplefilter("ignore")
        if not (child := os.fork()):
            try:
                runner.submit(User("a"), ["u"])
            except RunnerClosed as error:
                print(error, flush=True)
            runner.close()
            sys.exit(3)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        print(runner.wait(runner.submit(User("a"), ["u"]).job_id, 10).status, flush=True)
        runner.close()
    """)
    out, err = ended(process)
    assert (out.splitlines(), err) == (
        ["the runner belongs to the parent process; make one in this one", "3", "done", "left"],
        "",
    )


def test_a_runner_that_was_made_before_a_fork_can_be_started_after_it():
    """Each child gets an identity of its own, as prefork servers need."""
    process = python("""
        import warnings; warnings.simplefilter("ignore")
        runner = Runner(MemoryStore(), quick)
        before = runner.runner_id
        if not (child := os.fork()):
            with runner:
                assert runner.runner_id != before
                assert runner.wait(runner.submit(User("a"), ["u"]).job_id, 10).status == "done"
            sys.exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """)
    assert ended(process) == ("0\n", "")


@pytest.mark.parametrize("module", ["batchmill.runner", "batchmill.testing"])
def test_importing_a_runner_pulls_in_nothing_heavy(module):
    """No SQLAlchemy, Alembic, asyncio or HTTP client."""
    process = python(
        f"""
        import sys, {module}
        heavy = {{"sqlalchemy", "alembic", "asyncio", "httpx", "typer", "rich", "email", "ssl"}}
        print(sorted(heavy & set(sys.modules)))
        """,
        prelude="",
    )
    assert ended(process) == ("[]\n", "")
