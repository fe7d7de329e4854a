"""Each subject runs in a process of its own: the two ends of how it is called.

A child is ``python -m benchmarks.child module:function '{"keyword": …}'``. It says on standard
output ``{"ready": true}`` when it waits for a line on standard input, and ``{"result": …}`` last.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Self

TOP: Final = Path(__file__).parents[1]
PATIENCE: Final = 3600.0
"""Seconds that a child may take; then it is killed, whatever it waits for."""


class ChildFailed(RuntimeError):
    """A child ended without a result, or with a wrong one; the text says what is known of it."""


class Child:
    """A running child; used by ``with``, so that none is left behind."""

    def __init__(self, spec: str, *, python: str | None = None, **arguments: Any) -> None:
        self._spec = spec
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the child
        self._process = subprocess.Popen(
            [python or sys.executable, "-m", "benchmarks.child", spec, json.dumps(arguments)],
            cwd=TOP,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        self._timer = threading.Timer(PATIENCE, self._process.kill)
        self._timer.daemon = True
        self._timer.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()
        self._errors.close()

    def wait_ready(self) -> None:
        """Wait until the child waits for :meth:`go`."""
        self._answer("ready")

    def go(self) -> None:
        """Let a waiting child go on."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def result(self) -> Any:
        """What its function returned; raises ``ChildFailed``."""
        answer = self._answer("result")
        self._process.wait()
        return answer

    def _answer(self, key: str) -> Any:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(f'{{"{key}":'):
                return json.loads(line)[key]
        code = self._process.wait()
        self._errors.seek(0)
        said = [line.strip() for line in self._errors.read().splitlines() if line.strip()]
        last = said[-1] if said else f"ended without a word, with {code}"
        raise ChildFailed(f"{self._spec}: {last}")


def call(spec: str, *, python: str | None = None, **arguments: Any) -> Any:
    """Run a function in a child, and hand out what it returned."""
    with Child(spec, python=python, **arguments) as child:
        return child.result()


def wait_for_go() -> None:
    """In a child: say that it is ready, and wait for the word."""
    print(json.dumps({"ready": True}), flush=True)
    sys.stdin.readline()


def _main() -> None:
    module, _, function = sys.argv[1].partition(":")
    result = getattr(import_module(module), function)(**json.loads(sys.argv[2]))
    print(json.dumps({"result": result}), flush=True)


if __name__ == "__main__":
    _main()
