"""The door that submits go through."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from batchmill.errors import RunnerClosed


class Door:
    """Lets submits in until it is shut; who shuts it can wait for those that are still inside.

    So a ``drain`` sees every job that was accepted, and no job is stored for a runner that has
    already said that it left.
    """

    def __init__(self) -> None:
        self._left = threading.Condition()
        self._inside = 0
        self.shut = False

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Raises ``RunnerClosed`` once the door is shut."""
        with self._left:
            if self.shut:
                raise RunnerClosed("the runner takes no more jobs")
            self._inside += 1
        try:
            yield
        finally:
            with self._left:
                self._inside -= 1
                self._left.notify_all()

    def close(self) -> None:
        """Let nobody in any more."""
        with self._left:
            self.shut = True

    def wait_empty(self, timeout: float | None) -> bool:
        """Wait so many seconds (None: for ever) for those inside; False when time is up first."""
        with self._left:
            return self._left.wait_for(lambda: self._inside == 0, timeout)
