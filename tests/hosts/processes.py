"""Runner processes, and what they say."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

TOP = Path(__file__).parents[2]
PATIENCE = 30.0


class Process:
    """A process of ``tests.hosts.child``; its log goes to a file."""

    def __init__(
        self, folder: Path, name: str, url: str, *, inside: Sequence[str] = (), **given: Any
    ) -> None:
        self.name, self.log = name, folder / f"{name}.log"
        self.heard: list[str] = []
        self._changed = threading.Condition()
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [
                    *inside,
                    *(sys.executable, "-m", "tests.hosts.child"),
                    json.dumps({"name": name, "url": url} | given),
                ],
                cwd=TOP,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._listening = threading.Thread(
            target=self._listen, name=f"listening to {name}", daemon=True
        )
        self._listening.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                self.heard.append(line.strip())
                self._changed.notify_all()

    def hears(self, beginning: str, times: int = 1, within: float = PATIENCE) -> str:
        """Wait for the so manieth line that begins so."""
        deadline = monotonic() + within

        def found() -> list[str]:
            return [line for line in self.heard if line.startswith(beginning)]

        with self._changed:
            self._changed.wait_for(lambda: len(found()) >= times, deadline - monotonic())
        assert len(found()) >= times, f"{self.name} never said {beginning!r}\n{self.logged()}"
        return found()[times - 1]

    def tell(self) -> None:
        """A line: lets one fetch go."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def send(self, signal: int) -> None:
        """A signal."""
        self.process.send_signal(signal)

    def logged(self) -> str:
        """Its log so far."""
        return self.log.read_text()

    def end(self) -> None:
        """Kill it unless it has ended; leave nothing of it behind."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
        self._listening.join(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


@contextmanager
def ending(*processes: Process) -> Iterator[None]:
    """End them all afterwards."""
    try:
        yield
    finally:
        for process in processes:
            process.end()
