"""What the other processes of a test do; importable, so that they can be spawned."""

from __future__ import annotations

import multiprocessing
import threading
import traceback
from collections.abc import Callable
from typing import Any

from sqlalchemy import create_engine

from batchmill.store import BatchRepository, create_store_engine
from tests.store.support import HOUR, WIDE, submit

SPAWN = multiprocessing.get_context("spawn")
PATIENCE = 50.0


def in_processes(count: int, work: Callable[..., Any], *args: Any) -> list[Any]:
    """Call ``work(number, barrier, *args)`` in so many processes; their answers, in order."""
    barrier, answers = SPAWN.Barrier(count), SPAWN.SimpleQueue()
    processes = [
        SPAWN.Process(target=_answer, args=(answers, work, number, barrier, *args))
        for number in range(count)
    ]
    for process in processes:
        process.start()
    got = dict(answers.get() for _ in processes)
    for process in processes:
        process.join(PATIENCE)
        process.close()
    answers.close()
    return [got[number] for number in range(count)]


def _answer(answers: Any, work: Callable[..., Any], number: int, barrier: Any, *args: Any) -> None:
    try:
        answers.put((number, work(number, barrier, *args)))
    except BaseException:
        answers.put((number, traceback.format_exc()))


def submit_the_same(number: int, barrier: Any, url: str) -> Any:
    """Submit a job of the one caller and key."""
    engine = create_store_engine(url)
    store = BatchRepository(engine)
    barrier.wait(PATIENCE)
    admission = submit(store, f"job-{number}", 5, idem_key="the-key")
    engine.dispose()
    return admission.job_id


def submit_under_a_cap(number: int, barrier: Any, url: str) -> Any:
    """Submit a job of its own where three may live."""
    engine = create_store_engine(url)
    store = BatchRepository(engine)
    limits = WIDE.__class__(targets_per_job=10, jobs_per_caller=10, jobs_total=3)
    barrier.wait(PATIENCE)
    admission = submit(store, f"job-{number}", 1, caller=f"c{number}", limits=limits)
    engine.dispose()
    return admission.rejected.__name__ if admission.rejected else "stored"


def open_fresh(number: int, barrier: Any, urls: list[str]) -> Any:
    """Open each of several fresh files at the same moment as the others, by connecting."""
    modes = set()
    for url in urls:
        engine = create_store_engine(url)
        barrier.wait(PATIENCE)
        with engine.connect() as connection:
            modes.add(connection.exec_driver_sql("PRAGMA journal_mode").scalar())
        engine.dispose()
    return modes


def record_and_sweep(number: int, barrier: Any, url: str, ours: bool, count: int) -> Any:
    """Record targets of four jobs from four threads, each with a sweep now and then."""
    engine = create_store_engine(url) if ours else create_engine(url)
    store = BatchRepository(engine)
    errors: list[str] = []

    def record(thread: int) -> None:
        try:
            for idx in range(count):
                store.update_target(
                    f"job-{number}-{thread}", idx, now=1000, status="done", result="{}"
                )
                if idx % 25 == 0:
                    store.sweep(now=1000, ttl=HOUR)
        except Exception:
            errors.append(traceback.format_exc())

    barrier.wait(PATIENCE)
    threads = [threading.Thread(target=record, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    engine.dispose()
    return errors
