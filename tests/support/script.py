"""Processes of their own, on a few lines of code."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TOP = Path(__file__).parents[2]
PATIENCE = 30.0

PRELUDE = """
import os, signal, sys, threading, time
from datetime import timedelta
from batchmill.runner import Hooks, Result, Runner, RunnerConfig
from batchmill.store import BatchRepository, create_store_engine
from tests.runner.helpers import User

# The jobs that a shell runs in the background ignore it, and so would their children.
signal.signal(signal.SIGINT, signal.default_int_handler)
url = sys.argv[1]
engine = create_store_engine(url)
store = BatchRepository(engine)
begun = threading.Event()

def resolve(name, caller_class):
    return User(name)

def say(*words):
    print(*words, flush=True)

def listen():
    return sys.stdin.readline().strip()

def block(context, caller, target):
    begun.set()
    time.sleep(60)
    return Result("late")

def quick(context, caller, target):
    return Result(target.url)
"""


@contextmanager
def script(url: str, code: str) -> Iterator[subprocess.Popen[str]]:
    """An interpreter on this code, after the prelude; it is killed when it has not ended by then.

    ``say`` prints a line, ``listen`` waits for one.
    """
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PRELUDE + textwrap.dedent(code), url],
        cwd=TOP,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def hears(process: subprocess.Popen[str], line: str) -> None:
    """The next line that it says is this one."""
    assert process.stdout is not None
    heard = process.stdout.readline()
    assert heard == f"{line}\n", heard or (process.stderr and process.stderr.read())


def tell(process: subprocess.Popen[str], line: str = "") -> None:
    """Say a line to it."""
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
