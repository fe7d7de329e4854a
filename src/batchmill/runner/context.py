"""What a fetch may ask about its own attempt."""

from __future__ import annotations

import threading

from batchmill.validation import check_timeout


class FetchContext:
    """One attempt at one target; made by the runner, for the fetch that it is handed to."""

    __slots__ = ("_cancelled", "_changed", "attempt", "idx", "job_id")

    def __init__(self, job_id: str, idx: int, attempt: int, changed: threading.Condition) -> None:
        self.job_id: str = job_id
        self.idx: int = idx
        self.attempt: int = attempt
        """1 plus the earlier starts of this target."""
        self._changed = changed
        self._cancelled = False

    def __repr__(self) -> str:
        return f"FetchContext({self.job_id!r}, {self.idx}, attempt={self.attempt})"

    @property
    def cancelled(self) -> bool:
        """True once the runner's ``close`` began, or the job was cancelled, or the hold is lost.

        The runner never interrupts a fetch because of it: to end early is up to the fetch.
        """
        return self._cancelled

    def wait(self, seconds: float | None = None) -> bool:
        """Wait so many seconds (None: for ever), at most until cancelled.

        True when it ended because of that. Raises ``InvalidInput`` for what is no number.
        """
        timeout = check_timeout("seconds", seconds)
        with self._changed:
            self._changed.wait_for(lambda: self._cancelled, timeout=timeout)
            return self._cancelled

    def cancel(self) -> None:
        """Set by the runner; ends ``wait``."""
        with self._changed:
            self._cancelled = True
            self._changed.notify_all()
