"""Hearing of new work from PostgreSQL: LISTEN on a connection of one's own.

A submit notifies in its own transaction, so that the notification comes with the commit and not
at all without one (``statements.turns``). The channel belongs to the table ``batch_turn``, so that
schemas don't cross-talk; the payload is the queue.
"""

from __future__ import annotations

import logging
import os
import random
import selectors
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

from sqlalchemy import Engine

from batchmill.errors import MigrationError, NotMigrated
from batchmill.store.statements.common import CHANNEL_PREFIX

BEAT: Final = 30.0
"""Seconds of silence after which the connection is asked whether it still listens.

A server, or a proxy before it, that went away without a word leaves a connection that looks alive
and is deaf for ever.
"""
ANSWER_WITHIN: Final = 10.0
"""Seconds after which a connection that doesn't answer is given up."""
FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 30.0
"""Seconds between two tries to connect; each failure in a row doubles them."""
_END_WITHIN: Final = 1.0
"""Seconds that the end waits for the thread: it may be connecting to what doesn't answer."""

_TURN_TABLE: Final = "SELECT to_regclass(concat_ws('.', quote_ident(%s::text), 'batch_turn'))::oid"

_logger = logging.getLogger("batchmill.store")


class Subscription:
    """Calls ``wake`` when a transaction that brought new work of a queue was committed.

    ``schema`` is where the tables are, None where the search path finds them; ``queue`` None is any
    queue. While the context
    is entered one thread waits at one connection, which the engine makes and its pool doesn't
    count. A lost connection is made anew, and ``wake`` is then called in any case: what was
    notified meanwhile is lost. In a forked child it does nothing.
    """

    def __init__(
        self, engine: Engine, schema: str | None, wake: Callable[[], None], queue: str | None
    ) -> None:
        self._engine = engine
        self._schema = schema
        self._wake = wake
        self._queue = queue
        self._pid = os.getpid()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._end: socket.socket | None = None
        self._deaf = False
        self._failures = 0

    def __enter__(self) -> Self:
        """Listen from here on, or, where the database is away, as soon as it is back.

        Raises ``NotMigrated``. The thread is a daemon: a program that forgets to leave the
        context must still be able to exit.
        """
        listener = self._connect(first=True)
        ending, self._end = socket.socketpair()
        thread = threading.Thread(
            target=self._run, args=(listener, ending), name="batchmill-listen", daemon=True
        )
        try:
            thread.start()
        except BaseException:  # no more threads to be had
            for each in (listener, ending, self._end):
                if each is not None:
                    each.close()
            raise
        self._thread = thread
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the thread, and the connection with it."""
        if self._pid != os.getpid() or self._end is None:
            return
        self._ended.set()
        self._end.close()  # which the thread sees at the other end
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_END_WITHIN)

    def _run(self, listener: Listener | None, ending: socket.socket) -> None:
        with ending:
            self._listen_on(listener, ending)

    def _listen_on(self, listener: Listener | None, ending: socket.socket) -> None:
        while not self._ended.is_set():
            if listener is None:
                self._failures += 1
                self._ended.wait(_pause(self._failures))
                listener = None if self._ended.is_set() else self._connect(first=False)
                continue
            self._call()
            self._listen(listener, ending)
            listener = None
        if listener is not None:  # left before it began
            listener.close()

    def _connect(self, *, first: bool) -> Listener | None:
        """A connection that listens; None where there is none to be had now."""
        try:
            return Listener(self._engine, self._schema)
        except Exception as error:  # whatever a driver or a pool raises passes
            if first and isinstance(error, MigrationError):
                raise
            self._note_deaf(error)
        return None

    def _listen(self, listener: Listener, ending: socket.socket) -> None:
        """Pass on what is heard, until the end or until the connection is lost."""
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(ending, selectors.EVENT_READ)
                selector.register(listener.fileno(), selectors.EVENT_READ)
                while not self._ended.is_set():
                    heard = listener.heard(silent=not selector.select(listener.patience()))
                    if listener.proven:
                        self._note_hearing()
                    if heard and (self._queue is None or self._queue in heard):
                        self._call()
        except Exception as error:  # noqa: BLE001 - whatever shows that it is lost
            if not self._ended.is_set():
                self._note_deaf(error)
        finally:
            listener.close()

    def _note_deaf(self, error: BaseException) -> None:
        """Said once, by the error's class alone: its text may hold the address."""
        if not self._deaf:
            _logger.warning("not listening for new work (%s): polling", type(error).__name__)
        self._deaf = True

    def _note_hearing(self) -> None:
        """Only now is it true: behind a pool of connections one may connect and hear nothing."""
        if self._deaf:
            _logger.info("listening for new work again")
        self._deaf, self._failures = False, 0

    def _call(self) -> None:
        try:
            self._wake()
        except Exception as error:  # noqa: BLE001 - whoever is woken can't end the listening
            _logger.warning("wake raised %s", type(error).__name__)


def _pause(failures: int) -> float:
    longest = min(FIRST_PAUSE * 2.0 ** min(failures - 1, 16), LONGEST_PAUSE)
    return random.uniform(0.5, 1.0) * longest


class Listener:
    """One connection that listens: the driver's own, taken out of the engine's pool.

    The engine makes it, so that it is made as all others are (``connect_args``, a creator, an
    event that puts the password in); detached, it takes no place in the pool. After a fork the
    driver doesn't close what its parent opened.
    """

    def __init__(self, engine: Engine, schema: str | None) -> None:
        self._driver = _taken_from_pool(engine)
        self._asked = False
        self.proven = False
        """Whether it was seen to hear: it was notified, or answered that it listens."""
        try:
            self._driver.autocommit = True
            self._driver.execute(f"LISTEN {_channel(self._driver, schema)}")
        except BaseException:
            self.close()
            raise

    def fileno(self) -> int:
        """The socket to wait at."""
        return int(self._driver.fileno())

    def patience(self) -> float:
        """Seconds of silence after which :meth:`heard` has to be called all the same."""
        return ANSWER_WITHIN if self._asked else BEAT

    def heard(self, *, silent: bool) -> set[str]:
        """The queues that were notified of since the last call.

        ``silent``: nothing came for the time of :meth:`patience`. Raises whatever shows that the
        connection is lost.
        """
        wire = self._driver.pgconn
        if silent:
            self._ask(wire)
        wire.consume_input()
        self._hear_answer(wire)
        queues = set()
        while (notification := wire.notifies()) is not None:
            queues.add(notification.extra.decode())
        self.proven = self.proven or bool(queues)
        return queues

    def _ask(self, wire: Any) -> None:
        if self._asked:
            raise TimeoutError
        wire.send_query(b"SELECT count(*) FROM pg_listening_channels()")
        wire.flush()
        self._asked = True

    def _hear_answer(self, wire: Any) -> None:
        while not wire.is_busy() and (answer := wire.get_result()) is not None:
            if answer.get_value(0, 0) in (None, b"0"):
                raise ConnectionError
            self._asked, self.proven = False, True

    def close(self) -> None:
        """Close the connection; it never was the pool's to close."""
        with suppress(Exception):
            self._driver.close()


def _taken_from_pool(engine: Engine) -> Any:
    pooled = engine.raw_connection()
    driver: Any = pooled.driver_connection
    pooled.detach()
    return driver


def _channel(driver: Any, schema: str | None) -> str:
    found = driver.execute(_TURN_TABLE, (schema,)).fetchone()
    if found is None or found[0] is None:
        raise NotMigrated("batch_turn is missing; run batchmill.store.migrate.upgrade")
    return f"{CHANNEL_PREFIX}{found[0]}"


__all__ = ["ANSWER_WITHIN", "BEAT", "FIRST_PAUSE", "LONGEST_PAUSE", "Listener", "Subscription"]
