"""What time a runner goes by."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from batchmill.runner.logs import Log
from batchmill.runner.outages import Outages

_SERVICE: Final = "clock"


class StoreClock:
    """The store's clock, sampled now and then, carried on by this host's monotonic one.

    So runners of several hosts agree on the time, and one host's wrong clock can't take
    another's hold (design.md section 5; cases.md S6). Until the first sample succeeds it is
    this host's own clock.
    """

    def __init__(self, read: Callable[[], float], *, logger: Log, outages: Outages) -> None:
        self._read = read
        self._logger = logger
        self._outages = outages
        self._base: float | None = None

    def __call__(self) -> float:
        """Unix seconds; asks the store only the first time."""
        if self._base is None:
            self.sample()
        return self.peek()

    def peek(self) -> float:
        """Unix seconds, without asking the store."""
        return time.time() if self._base is None else self._base + time.monotonic()

    def sample(self) -> None:
        """Ask the store; when it can't answer, the last sample still counts."""
        before = time.monotonic()
        try:
            read = self._read()
        except Exception as error:  # noqa: BLE001 - a clock goes on, whatever a store raises
            if self._outages.failed(_SERVICE, error):
                self._logger.warning(
                    "store error (%s): its clock can't be read", type(error).__name__
                )
            return
        self._outages.answered(_SERVICE)
        self._base = read - (before + time.monotonic()) / 2
