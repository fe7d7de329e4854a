"""Signals that end a command: the first one asks, the second leaves at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any, Final, Self

from batchmill.cli.errors import INTERRUPTED

_SHOW_CURSOR: Final = b"\x1b[?25h\n"


class Interrupts:
    """While entered, the first of ``signals`` sets ``asked``; any later one ends the process.

    ``wake`` ends a ``wait`` early without asking for an end. Off the main thread, where Python
    allows no handler, nothing is caught.
    """

    def __init__(self, *signals: signal.Signals) -> None:
        self.asked = False
        self._event = threading.Event()
        self._signals = signals
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for each in self._signals:
                self._before[each] = signal.signal(each, self._caught)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)

    def wake(self) -> None:
        """End the wait that is on, or the next one; from any thread."""
        self._event.set()

    def wait(self, seconds: float) -> bool:
        """Wait so long, at most until asked or woken; True when asked."""
        self._event.wait(seconds)
        self._event.clear()
        return self.asked

    def _caught(self, _number: int, _frame: FrameType | None) -> None:
        if self.asked:
            _leave_at_once()
        self.asked = True
        self._event.set()


def _leave_at_once() -> None:
    """End the process without waiting for any thread; a hidden cursor is shown again."""
    if os.isatty(sys.__stderr__.fileno() if sys.__stderr__ else 2):
        os.write(2, _SHOW_CURSOR)
    os._exit(INTERRUPTED)
