"""Ending in time, whatever a store does meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable


def ended_within(seconds: float, call: Callable[[], object], *, name: str) -> bool:
    """Call it in a thread of its own; False when it goes on after so many seconds.

    Where no thread can be started, at the interpreter's exit since Python 3.12, it is just
    called.
    """
    thread = threading.Thread(target=call, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        call()
        return True
    thread.join(min(seconds, threading.TIMEOUT_MAX))
    return not thread.is_alive()
