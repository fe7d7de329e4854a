"""Two processes that do a bit of everything on one growing file: nothing else grows."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest

from tests.support import process
from tests.support.database import Database
from tests.support.fixtures import on_sqlite
from tests.support.invariants import broken
from tests.support.tables import print_later

TOP = Path(__file__).parents[2]
PROCESSES = 2
MB = 1024 * 1024
POOLED = 2 * PROCESSES
"""Files of one more connection a process: its pool opens them when it first needs them."""
ROWS = 16
"""About how many lines the table has."""

Child = subprocess.Popen[str]


@dataclass(frozen=True)
class Sample:
    """What the processes use together, and the sizes of the files."""

    second: float
    memory: int
    files: int
    threads: int
    wal: int
    file: int
    jobs: int

    def line(self) -> str:
        """A line of the table."""
        return (
            f"{self.second:>7.0f} {self.memory / MB:>10.1f} {self.files:>6} {self.threads:>8}"
            f" {self.wal / MB:>8.2f} {self.file / MB:>8.2f} {self.jobs:>6}"
        )


HEAD = " second memory MiB  files  threads  WAL MiB file MiB   jobs"


@contextmanager
def working(database: Database) -> Iterator[list[Child]]:
    """The processes at work; after it they have ended, one way or the other."""
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.soak.child", database.url, str(seed)],
            cwd=TOP,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in range(PROCESSES)
    ]
    try:
        for child in children:
            assert child.stdout.readline() == "ready\n"
        yield children
    finally:
        for child in children:
            if child.poll() is None:
                child.kill()
            child.wait()
            child.stdin.close()
            child.stdout.close()


def sample(database: Database, children: list[Child], second: float) -> Sample:
    """How it stands now."""
    pids = [child.pid for child in children]
    size, wal = database.sizes()
    return Sample(
        second,
        sum(map(process.memory, pids)),
        sum(map(process.open_files, pids)),
        sum(map(process.threads, pids)),
        wal,
        size,
        database.query("SELECT count(*) FROM batch_job")[0][0],
    )


def watch(database: Database, children: list[Child], seconds: float, every: float) -> list[Sample]:
    """Samples, one each so many seconds, while all of them work."""
    begun, samples, pause = time.monotonic(), [], threading.Event()
    while (now := time.monotonic() - begun) < seconds:
        assert [child.poll() for child in children] == [None] * PROCESSES, "one has ended"
        samples.append(sample(database, children, now))
        pause.wait(every)
    return samples


def ended(children: list[Child]) -> Counter[str]:
    """End the work in order; what was done. Nothing may be left behind."""
    done: Counter[str] = Counter()
    for child in children:
        child.stdin.close()
    for child in children:
        lines = child.stdout.read().splitlines()
        assert child.wait(60) == 0
        did, left = map(json.loads, lines)
        assert left == {"connections out": 0, "threads": 0, "files": 0}
        done.update(did)
    return done


@on_sqlite
def test_nothing_leaks_in_ten_seconds(database):
    """Threads and files are as many at the end as in the middle, and none after closing."""
    with working(database) as children:
        samples = watch(database, children, seconds=8, every=0.25)
        done = ended(children)
    settled = samples[len(samples) // 3 :]
    assert max(each.threads for each in settled) <= min(each.threads for each in settled) + 2
    early, late = settled[: len(settled) // 2], settled[len(settled) // 2 :]
    assert max(each.files for each in late) <= max(each.files for each in early) + POOLED
    assert min(done[name] for name in ("submit", "poll", "page", "swept", "evict", "list")) > 0
    assert broken(database, submitted=False) == []


@on_sqlite
@pytest.mark.soak
@pytest.mark.timeout(600)
def test_five_minutes_level_off(database):
    """Memory, open files, threads and the WAL level off while the file slowly grows."""
    with working(database) as children:
        samples = watch(database, children, seconds=300, every=1)
        done = ended(children)
    rows = [each.line() for each in samples[:: len(samples) // ROWS]]
    did = ", ".join(f"{count} {name}" for name, count in sorted(done.items()))
    print_later(
        f"soak, {database.kind}: {PROCESSES} processes of 4 workers, 5 minutes",
        [HEAD, *rows, f"done: {did}"],
    )
    middle, last = samples[len(samples) // 3 : 2 * len(samples) // 3], samples[-len(samples) // 3 :]
    assert median(s.memory for s in last) <= median(s.memory for s in middle) * 1.05
    assert max(s.memory for s in last) <= max(s.memory for s in middle) * 1.10
    assert max(s.files for s in last) <= max(s.files for s in middle) + POOLED
    assert max(s.threads for s in last) <= max(s.threads for s in middle)
    assert max(s.wal for s in last) <= max(s.wal for s in middle) * 1.25 + MB
    assert last[-1].file > middle[0].file > samples[0].file
    assert broken(database, submitted=False) == []
