"""Hooks, in order and out of the runner's way, and what may be logged."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from batchmill.records import JobStatus, Settled
from batchmill.runner.config import Hooks
from batchmill.runner.logs import Log

_FRAMES = 12


class Observer:
    """Calls the application's hooks strictly in the order in which they were queued.

    Whoever queued something calls ``drain`` once it holds no lock: one thread at a time calls
    the hooks, the others leave theirs to it. ``count_live`` and ``now`` are only used where a
    hook needs them.
    """

    def __init__(
        self,
        hooks: Hooks,
        *,
        count_live: Callable[[], int],
        now: Callable[[], float],
        logger: Log,
    ) -> None:
        self._hooks = hooks
        self._count_live = count_live
        self._now = now
        self._logger = logger
        self._queue: deque[tuple[str, Callable[..., Any], tuple[Any, ...]]] = deque()
        self._calling = threading.Lock()
        self._counting = threading.Lock()
        self._inflight = 0
        self.counts_inflight = hooks.inflight is not None

    def target(self, error: BaseException | None, seconds: float, result_bytes: int) -> None:
        """A target was stored."""
        if self._hooks.target is not None:
            self._queue.append(("target", self._hooks.target, (error, seconds, result_bytes)))

    def submitted(self, *, reused: bool) -> None:
        """A submit was answered."""
        if self._hooks.job is not None:
            outcome = "reused" if reused else "created"
            self._queue.append(("job", self._hooks.job, (outcome,)))

    def settled(self, settled: Settled) -> None:
        """A job ended, in a transaction of this runner's."""
        if self._hooks.job is not None:
            self._queue.append(("job", self._hooks.job, (str(JobStatus(settled.status)),)))
        if self._hooks.job_seconds is not None:
            seconds = max(0.0, self._now() - settled.created_at)
            self._queue.append(("job_seconds", self._hooks.job_seconds, (seconds,)))

    def depth(self) -> None:
        """The number of live jobs may have changed."""
        if self._hooks.depth is not None:
            self._queue.append(("depth", self._tell_depth, ()))

    def _tell_depth(self) -> None:
        if self._hooks.depth is not None:
            self._hooks.depth(self._count_live())

    def inflight(self, change: int) -> None:
        """A fetch began or ended."""
        hook = self._hooks.inflight
        if hook is not None:
            with self._counting:
                self._inflight += change
                self._queue.append(("inflight", hook, (self._inflight,)))

    def then(self, call: Callable[..., Any], *args: Any, **named: Any) -> None:
        """Call something of the runner's own once the hooks before it have been called."""
        self._queue.append(("own", partial(call, *args, **named), ()))

    def drain(self) -> None:
        """Call what is queued, unless another thread is doing so."""
        while self._queue and self._calling.acquire(blocking=False):
            try:
                while self._queue:
                    self._call(*self._queue.popleft())
            finally:
                self._calling.release()

    def _call(self, name: str, hook: Callable[..., Any], args: tuple[Any, ...]) -> None:
        try:
            hook(*args)
        except BaseException as error:  # a hook changes nothing, whatever it raises
            if isinstance(error, KeyboardInterrupt) and _in_main_thread():
                raise  # Ctrl-C, which only by chance came while a hook was running
            self._logger.warning("the %s hook raised: %s", name, frames(error))


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def frames(error: BaseException) -> str:
    """A traceback fit to be logged: file names, lines, functions and class names, no text."""
    places = []
    link = error.__traceback__
    while link is not None:
        code = link.tb_frame.f_code
        places.append(f"{_base(code.co_filename)}:{link.tb_lineno} {code.co_name}")
        link = link.tb_next
    if len(places) > _FRAMES:
        places = ["…", *places[-_FRAMES:]]
    return " < ".join([type(error).__name__, *reversed(places)])


def _base(path: str) -> str:
    """The last part of a path; pathlib costs more to import than all the rest of this module."""
    return path.replace("\\", "/").rpartition("/")[2]
