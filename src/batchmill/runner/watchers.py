"""Who waits in this process for a job to change."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Watcher:
    """One that waits: ``every`` change of its job, or only its end."""

    every: bool
    woken: threading.Event = field(default_factory=threading.Event)


class Watchers:
    """Wakes those who wait for a job; costs nothing while nobody waits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_job: dict[str, list[Watcher]] = {}

    def __bool__(self) -> bool:
        """Whether anybody waits at all."""
        return bool(self._by_job)

    @contextmanager
    def watching(self, job_id: str, *, every: bool) -> Iterator[threading.Event]:
        """The event that is set on each change of the job, or (not ``every``) at its end."""
        watcher = Watcher(every)
        with self._lock:
            self._by_job.setdefault(job_id, []).append(watcher)
        try:
            yield watcher.woken
        finally:
            with self._lock:
                waiting = self._by_job[job_id]
                waiting.remove(watcher)
                if not waiting:
                    del self._by_job[job_id]

    def changed(self, job_id: str, *, ended: bool) -> None:
        """A target of the job was stored, or it ended."""
        if not self._by_job:
            return
        with self._lock:
            for watcher in self._by_job.get(job_id, ()):
                if ended or watcher.every:
                    watcher.woken.set()
