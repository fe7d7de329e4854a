"""Runner: the threaded runner."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import partial
from time import monotonic
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

from batchmill.errors import BatchmillError, MigrationError, RunnerClosed, StoreError
from batchmill.records import CallerClass, Released
from batchmill.runner.arguments import check_arguments
from batchmill.runner.config import Caller, Hooks, RunnerConfig
from batchmill.runner.door import Door
from batchmill.runner.identity import new_identity
from batchmill.runner.logs import Log
from batchmill.runner.parts import Parts
from batchmill.runner.patience import ended_within
from batchmill.runner.protocol import FetchFunc, JobStore, ResolveCaller
from batchmill.runner.reading import JobReader
from batchmill.runner.reports import Submission
from batchmill.runner.rules import DEFAULT_QUEUE
from batchmill.runner.services import RELEASE
from batchmill.runner.targets import Target
from batchmill.validation import check_name, check_text, check_timeout

C = TypeVar("C", bound=Caller)

_GRACE: Final = 0.5
"""Seconds that the store gets at the end of a ``close`` whose timeout is up."""
_AT_EXIT: Final = 1.0
"""Seconds that fetches get when the interpreter exits and ``close`` was never called."""


class Runner(JobReader, Generic[C]):
    """Drains the jobs of a store with ``config.workers`` threads.

    Nothing starts in the constructor: ``start`` does, called by ``with``; a submit before it is
    fine. Without ``resolve_caller`` (local) callers live in memory only, and a job ends with the
    runner that it was submitted to; with it (shared) any runner of the same queue on the same
    database takes it. ``runner_id`` is a label for people, of which up to 47 characters are
    kept: the identity is it and a random suffix. ``clock`` gives unix seconds; it is
    ``time.time`` unless given, and shared the store's own. A runner that was closed isn't
    started again: make a new one.
    """

    def __init__(
        self,
        store: JobStore,
        fetch: FetchFunc[C],
        config: RunnerConfig | None = None,
        *,
        hooks: Hooks | None = None,
        resolve_caller: ResolveCaller[C] | None = None,
        queue: str = DEFAULT_QUEUE,
        runner_id: str | None = None,
        clock: Callable[[], float] | None = None,
        logger: logging.Logger | None = None,
    ) -> None:
        check_arguments(store, fetch, config, hooks, resolve_caller, clock, logger)
        self.config: RunnerConfig = RunnerConfig() if config is None else config
        self._label = check_text("runner_id", "runner" if runner_id is None else runner_id)
        self._queue = check_name("queue", queue, least=1)
        self._shared = resolve_caller is not None
        self._logger = Log(logging.getLogger("batchmill.runner") if logger is None else logger)
        self._mint()
        self._parts = parts = Parts(
            store,
            fetch,
            self.config,
            hooks=Hooks() if hooks is None else hooks,
            resolve_caller=resolve_caller,
            identity=lambda: self._identity,
            clock=clock,
            logger=self._logger,
        )
        super().__init__(
            store,
            parts.watchers,
            poll_interval=self.config.poll_interval.total_seconds(),
            now=parts.now,
        )
        self._state = threading.RLock()
        self._closing_lock = threading.RLock()  # a hook may close while close calls it
        self._door = Door()
        self._started = self._closing = self._closed = False
        self._push: AbstractContextManager[Any] | None = None
        self._at_exit: Callable[[], None] | None = None
        self._ending: threading.Thread | None = None

    def _mint(self) -> None:
        self._identity = new_identity(self._label, queue=self._queue, shared=self._shared)
        self._pid = os.getpid()

    @property
    def runner_id(self) -> str:
        """The identity that the store knows this runner by."""
        return self._identity.id

    # Starting

    def start(self) -> Self:
        """Release what lost runners left, then start the threads; again does nothing.

        Raises ``RunnerClosed`` after a close, and ``MigrationError`` where the database isn't
        migrated; another store error is logged, and the runner goes on.
        """
        with self._state:
            self._check_process()
            if self._closing:
                raise RunnerClosed("the runner has been closed; make a new one")
            if self._started:
                return self
            self._reconcile_at_start()
            self._started = True
            try:
                self._parts.start(self.runner_id)
                self._push = self._subscribe()
            except BaseException:  # no more threads to be had, or Ctrl-C: leave none behind
                self.close(0)
                raise
            self._at_exit = partial(_close_at_exit, weakref.ref(self))
            atexit.register(self._at_exit)
        self._logger.info("runner %s started", self.runner_id)
        return self

    def _reconcile_at_start(self) -> None:
        """First say that this one is alive, and for how long it holds: its own jobs aren't lost."""
        try:
            self._parts.holder.step()
            self.reconcile()
        except MigrationError:
            raise
        except StoreError as error:
            if self._parts.outages.failed(RELEASE, error):  # the loop that does the same again
                self._logger.warning("start: store error (%s)", type(error).__name__)

    def _subscribe(self) -> AbstractContextManager[Any] | None:
        try:
            push = self._store.subscribe(self._parts.workers.wake, queue=self._queue)
            if push is not None:
                push.__enter__()
        except StoreError as error:
            self._logger.warning("subscribe: store error (%s); polling", type(error).__name__)
            return None
        return push

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _check_process(self) -> None:
        """After a fork the child has no thread of its parent's runner, and must not act for it.

        One that wasn't started becomes the child's own, under an identity of its own.
        """
        if self._pid == os.getpid():
            return
        if self._started or self._closing:
            raise RunnerClosed("the runner belongs to the parent process; make one in this one")
        self._mint()

    # Jobs

    def submit(
        self,
        caller: C,
        targets: Iterable[Target | str],
        *,
        caller_class: str = CallerClass.RESTRICTED,
        within: Any = None,
    ) -> Submission:
        """Store a job of these targets, in order; a plain text is a target of no options.

        Answers with the live, done or partial job of the same caller and targets instead
        (``reused``), if there is one. ``within`` takes a Session or Connection of the
        application's: then both commit or neither, nothing is swept, a worker finds the job by
        the database's push or by polling, and hooks hear of it when the runner first sees it
        committed.

        Raises ``NoTargets``, ``TooManyTargets``, ``CallerBusy``, ``Busy``, ``InvalidInput``,
        ``RunnerClosed``, and ``StoreError``.
        """
        self._check_process()
        with self._door.entered():
            submission = self._parts.submitter.submit(
                caller,
                targets,
                caller_class=caller_class,
                within=within,
                now=self._now() if within is None else self._parts.peek(),
            )
        if within is None and not submission.reused:
            self._parts.workers.wake()
            self._sweep_after_submit()
        return submission

    def _sweep_after_submit(self) -> None:
        """spec/seed-001, rule 1: a created submit sweeps. The job is stored: it can't fail now."""
        try:
            self._parts.housekeeper.sweep()
        except StoreError as error:
            self._logger.warning("sweep: store error (%s)", type(error).__name__)

    def cancel(self, job_id: str, *, caller: Caller | str | None = None) -> bool:
        """End a live job as cancelled at once; False for an unknown or ended one.

        Its target in flight sees ``cancelled``, finishes and is stored; no other one starts
        (spec/seed-001, rule 5).
        """
        self._check_process()
        if caller is not None and self.progress(job_id, caller=caller) is None:
            return False
        settled = self._store.cancel_job(job_id, now=self._now())
        if settled is None:
            return False
        self._parts.workers.cancel([job_id])
        self._parts.after.cancelled(settled)
        return True

    def reconcile(self) -> Released:
        """Put back or fail what lost runners left, now; what that was, all together.

        ``start`` does it, and it is repeated with every ``poll_interval``, at most half a
        ``hold_for``, and a minute.
        """
        released = self._parts.housekeeper.release_all()
        if released.put_back:
            self._parts.workers.wake()
        return released

    # Ending

    def drain(self, timeout: float | None = None) -> None:
        """Take no more jobs, and work off what this runner can take.

        Returns once nothing is in flight here, nothing of its queue can be claimed, and nothing
        waits to be tried again: local, that is every job submitted here; shared, what others have
        in flight isn't waited for. ``timeout`` is in seconds, None for ever; ``TimeoutError``
        when it is up, and the runner goes on. ``RunnerClosed`` when it is closed meanwhile.
        """
        self._check_process()
        patience = check_timeout("timeout", timeout)
        if self._closing:
            raise RunnerClosed("the runner has been closed")
        if not self._started:
            raise BatchmillError("start the runner before draining it")
        self._door.close()
        deadline = None if patience is None else monotonic() + patience
        dry = self._door.wait_empty(patience) and self._parts.workers.wait_dry(
            None if deadline is None else max(0.0, deadline - monotonic())
        )
        if self._closing:
            raise RunnerClosed("the runner was closed before it was drained")
        if not dry:
            raise TimeoutError(f"the runner was not drained in {timeout} s")

    def close(self, timeout: float | None = None) -> None:
        """Stop claiming, let the fetches in flight end, put back those that don't, and end.

        ``timeout`` is in seconds, None waits for every fetch. Fetches see ``cancelled`` at once;
        what they bring in time is stored, and what comes later is dropped. With a timeout it
        returns about a second after it, also when the store doesn't answer. Shared jobs go on
        elsewhere; local ones stay until a runner reconciles. What the store can't take in
        the end is logged by job id; its hold lapses. Calling it again is fine. A fetch or a
        worker's hook that calls it can't be waited for: then all in flight is put back at once.
        """
        timeout = check_timeout("timeout", timeout)
        if self._pid != os.getpid() or self._ending is threading.current_thread():
            return  # a child of a fork, or a hook that the end itself calls
        self._closing = True
        self._door.close()
        patience = -1.0 if timeout is None else timeout + _GRACE
        first = self._closing_lock.acquire(timeout=patience)
        try:
            if not self._closed:
                self._close(timeout if first else 0.0)
                self._closed = True
        finally:
            if first:
                self._closing_lock.release()

    def _close(self, timeout: float | None) -> None:
        with self._state:  # a start under way ends first
            self._parts.workers.stop()
        end = partial(self._end, timeout, caller=threading.current_thread(), begun=monotonic())
        if timeout is None:
            end()
        elif not ended_within(timeout + 2 * _GRACE, end, name=f"{self.runner_id}-close"):
            self._logger.warning("runner %s: its store doesn't answer; closed", self.runner_id)

    def _end(self, timeout: float | None, *, caller: threading.Thread, begun: float) -> None:
        self._ending = threading.current_thread()
        try:
            self._finish(timeout, caller)
            self._leave()
        finally:
            self._ending = None
        self._logger.info("runner %s closed in %.2f s", self.runner_id, monotonic() - begun)

    def _finish(self, timeout: float | None, caller: threading.Thread) -> None:
        grace = self._parts.hold_for if timeout is None else _GRACE
        late, dropped = self._parts.workers.finish(timeout, grace=grace, caller=caller)
        for job_id in late:
            self._logger.info("job %s: its target was put back, the runner closes", job_id)
        for job_id in dropped:
            self._logger.warning("job %s: an outcome could not be stored", job_id)

    def _leave(self) -> None:
        self._parts.stop_services(_GRACE)
        self._door.wait_empty(_GRACE)
        push, self._push = self._push, None
        try:
            if push is not None:
                push.__exit__(None, None, None)
            self._store.leave(self.runner_id)
        except Exception as error:  # noqa: BLE001 - the end is reached, whatever a store raises
            self._logger.warning("leave: store error (%s)", type(error).__name__)
        if self._at_exit is not None:
            atexit.unregister(self._at_exit)


def _close_at_exit(reference: weakref.ref[Runner[Any]]) -> None:
    """The interpreter exits and ``close`` was never called (cases.md S14)."""
    runner = reference()
    if runner is not None:
        runner.close(_AT_EXIT)
