"""Runners that are killed and stopped, and a server that is restarted, while an application works.

Who calls it judges the :class:`Story` that comes out; ``benchmarks/chaos.py`` draws it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from batchmill.errors import SubmitRejected
from batchmill.runner import Runner, RunnerConfig
from batchmill.store import BatchRepository
from tests.hosts.processes import TOP
from tests.hosts.servers import Server
from tests.hosts.support import forget, resolve
from tests.runner.helpers import User
from tests.support.database import Database

JOBS = 40
RUNNERS, WORKERS = 4, 2
FETCH = 0.2
"""Seconds of a fetch: it bounds the rate, and not a machine that others use too."""
HOLD = 2.0
LONG_STOPS = 0.15
"""The share of stops that last longer than a hold: what is in flight there is taken over."""
BACK_WITHIN = HOLD + 5
ENDS_WITHIN = 90.0

_ADD_TIME = {
    "postgresql": "ALTER TABLE finish_log ADD at timestamptz DEFAULT clock_timestamp()",
    "mariadb": "ALTER TABLE finish_log ADD at datetime(6) INVISIBLE DEFAULT sysdate(6)",
}
_TIMES = {
    "postgresql": "SELECT extract(epoch FROM at)::float8 FROM finish_log ORDER BY at",
    "mariadb": "SELECT CAST(unix_timestamp(at) AS double) FROM finish_log ORDER BY at",
}


@dataclass(frozen=True)
class Event:
    """What was done to whom, in seconds from the beginning."""

    at: float
    what: str
    whom: str
    lasts: float = 0.0
    """Of a stop, and of a restart: until the server takes connections again."""


@dataclass
class Story:
    """What happened; all times in seconds from the beginning."""

    kind: str
    calm: tuple[float, float]
    events: list[Event] = field(default_factory=list)
    finishes: list[float] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    """Of the application's calls: each kind of answer, and of error."""
    ended: float = 0.0

    def rate(self, begin: float, seconds: float = 1.0) -> float:
        """Targets stored a second in the window that begins here."""
        first, last = (bisect_left(self.finishes, each) for each in (begin, begin + seconds))
        return (last - first) / seconds

    @property
    def undisturbed(self) -> float:
        """The rate before anything happened."""
        begin, end = self.calm
        return self.rate(begin, end - begin)

    def back_after(self, event: Event, share: float = 0.9) -> float:
        """Seconds from an event to the end of the first second that has this share of the rate.

        Those in which there is no server don't count.
        """
        step = 0.05
        for number in range(int(60 / step)):
            begin = event.at + number * step
            if self.rate(begin) >= share * self.undisturbed:
                return begin + 1 - event.at - self._away(event.at, begin + 1)
        return 60.0

    def _away(self, begin: float, end: float) -> float:
        """Seconds of this time in which there was no server."""
        restarts = [event for event in self.events if event.what == "restart"]
        return sum(
            max(0.0, min(end, each.at + each.lasts) - max(begin, each.at)) for each in restarts
        )

    def hurt(self) -> list[Event]:
        """The kills and the restarts."""
        return [event for event in self.events if event.what in ("kill", "restart")]


class Application:
    """Keeps so many jobs alive and asks about them, in a thread of its own."""

    def __init__(self, store: BatchRepository, story: Story, targets: int) -> None:
        config = RunnerConfig(jobs_per_caller=JOBS, jobs_total=JOBS, targets_per_job=targets)
        self._runner = Runner(store, print, config, resolve_caller=resolve)
        self._story, self._targets, self._ended = story, targets, threading.Event()
        self._thread = threading.Thread(target=self._work, name="application")
        self.job_ids: list[str] = []

    def start(self) -> None:
        """Begin, with all jobs."""
        self._thread.start()

    def stop(self) -> None:
        """Submit no more."""
        self._ended.set()
        self._thread.join()

    def _work(self) -> None:
        chance, numbers = random.Random(1), count()
        number = next(numbers)
        while not self._ended.is_set():
            if self._said("submit", self._submit, number):
                number = next(numbers)
                continue
            if self.job_ids:
                self._said("status", self._runner.progress, chance.choice(self.job_ids))
            self._ended.wait(0.03)

    def _submit(self, number: int) -> None:
        urls = [f"{number}-{idx}" for idx in range(self._targets)]
        self.job_ids.append(self._runner.submit(User("u"), urls).job_id)

    def _said(self, name: str, call: Callable[[Any], object], argument: Any) -> bool:
        try:
            call(argument)
        except SubmitRejected:
            return False
        except Exception as error:
            self._story.outcomes[f"{name}: {type(error).__name__}"] += 1
            return False
        self._story.outcomes[name] += 1
        return True


@dataclass(frozen=True)
class Plan:
    """So many calm seconds, and so many with a kill or a stop in each but for the restarts."""

    calm: float = 7.0
    wild: int = 60
    restarts: int = 2
    targets: int = 25
    """Of each job."""


@dataclass(frozen=True)
class Forked:
    """A runner process."""

    name: str
    pid: int

    def send(self, number: int) -> None:
        """A signal, if it still is there."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def gone(self) -> bool:
        """Whether it has ended."""
        return not Path(f"/proc/{self.pid}").exists()


class Nursery:
    """Where runner processes come from."""

    def __init__(self, folder: Path, url: str) -> None:
        self._given = {"url": url, "hold_for": HOLD, "fetch": FETCH, "workers": WORKERS}
        self._folder, self._numbers = folder, count()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.hosts.nursery"],
            cwd=TOP,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._line() == "ready"

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def runner(self) -> Forked:
        """A new one."""
        assert self._process.stdin is not None
        name = f"runner-{next(self._numbers)}"
        given = self._given | {"name": name, "log": str(self._folder / f"{name}.log")}
        self._process.stdin.write(json.dumps(given) + "\n")
        self._process.stdin.flush()
        return Forked(name, int(self._line()))

    def close(self) -> None:
        """No more come."""
        with self._process:
            self._process.kill()


class Chaos:
    """One run."""

    def __init__(self, server: Server, folder: Path, plan: Plan) -> None:
        self._server, self._folder, self._plan = server, folder, plan
        self._chance = random.Random(7)
        self._runners: list[Forked] = []
        self._stopped: list[tuple[float, Forked]] = []
        self._begun = 0.0

    def run(self, database: Database) -> Story:
        """All of it; afterwards no process is left."""
        database.query(_ADD_TIME[database.kind])
        story = Story(database.kind, calm=(2.0, self._plan.calm))
        application = Application(database.store(), story, self._plan.targets)
        nursery = Nursery(self._folder, database.url)
        try:
            self._begun = time.time()
            self._runners = [nursery.runner() for _ in range(RUNNERS)]
            application.start()
            time.sleep(self._plan.calm)
            self._disturb(database, nursery, story)
            application.stop()
            story.ended = self._drained(database)
        finally:
            application.stop()
            self._end()
            nursery.close()
        story.finishes = [at - self._begun for (at,) in database.query(_TIMES[database.kind])]
        return story

    def _end(self) -> None:
        for runner in self._runners:
            runner.send(signal.SIGCONT)
            runner.send(signal.SIGTERM)
        deadline = time.time() + 10
        while time.time() < deadline and not all(runner.gone() for runner in self._runners):
            time.sleep(0.02)
        for runner in self._runners:
            runner.send(signal.SIGKILL)

    def _disturb(self, database: Database, nursery: Nursery, story: Story) -> None:
        """A kill or a stop each second, so many seconds; the server is restarted in between."""
        seconds, times = self._plan.wild, self._plan.restarts
        restarts = {seconds * (n + 1) // (times + 1) for n in range(times)}
        lost = 0.0
        for second in range(seconds):
            due = self._begun + self._plan.calm + second + lost
            while (pause := due - time.time()) > 0:
                time.sleep(min(pause, 0.05))
                self._resume()
            if second in restarts:
                lost += self._restart(database, story)
            else:
                story.events.append(self._hurt_one(nursery))
        while self._stopped:
            self._resume()
            time.sleep(0.05)

    def _restart(self, database: Database, story: Story) -> float:
        """Kill the server and start it again; the seconds that it took."""
        begun = time.time()
        self._server.kill()
        self._server.start()
        forget(database)
        took = time.time() - begun
        story.events.append(Event(begun - self._begun, "restart", "server", took))
        return took

    def _hurt_one(self, nursery: Nursery) -> Event:
        stopped = [runner for _, runner in self._stopped]
        going = [n for n, runner in enumerate(self._runners) if runner not in stopped]
        number = self._chance.choice(going or range(RUNNERS))
        runner, at = self._runners[number], time.time()
        if not going or self._chance.random() < 0.5:
            self._stopped = [each for each in self._stopped if each[1] is not runner]
            runner.send(signal.SIGKILL)
            self._runners[number] = nursery.runner()
            return Event(at - self._begun, "kill", runner.name)
        runner.send(signal.SIGSTOP)
        lasts = HOLD + 1 if self._chance.random() < LONG_STOPS else self._chance.uniform(0.1, 0.7)
        self._stopped.append((at + lasts, runner))
        return Event(at - self._begun, "stop", runner.name, lasts)

    def _resume(self) -> None:
        now = time.time()
        for at, runner in [each for each in self._stopped if each[0] <= now]:
            runner.send(signal.SIGCONT)
            self._stopped.remove((at, runner))

    def _drained(self, database: Database) -> float:
        """Wait until every job has ended."""
        deadline = time.time() + ENDS_WITHIN
        live = "SELECT count(*) FROM batch_job WHERE status IN ('queued', 'running')"
        while database.query(live) != [(0,)] and time.time() < deadline:
            time.sleep(0.1)
        return time.time() - self._begun

    def logs(self) -> str:
        """What all runners logged."""
        return "".join(path.read_text() for path in sorted(self._folder.glob("runner-*.log")))
