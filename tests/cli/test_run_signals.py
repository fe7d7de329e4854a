from __future__ import annotations

import json
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Event
from time import monotonic

import pytest

WAITING = """
import pathlib, time, types
from batchmill import Result

def fetch(context, caller, target):
    with open("calls.txt", "a") as calls:
        calls.write(f"{target.url}\\n")
    while not pathlib.Path("go").exists():
        if context.wait(0.02):
            break
    return Result(target.url)

def stubborn(context, caller, target):
    with open("calls.txt", "a") as calls:
        calls.write(f"{target.url}\\n")
    while not pathlib.Path("go").exists():
        time.sleep(0.02)
    return Result(target.url)

def anybody(name, caller_class):
    return types.SimpleNamespace(name=name)
"""


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(WAITING)
    (tmp_path / "urls").write_text("".join(f"u{n}\n" for n in range(5)))


def _until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait for another process: at most so long, looking often."""
    deadline, never = monotonic() + seconds, Event()
    while not condition():
        assert monotonic() < deadline, "it never came"
        never.wait(0.02)


def _calls() -> list[str]:
    path = Path("calls.txt")
    return path.read_text().split() if path.exists() else []


def _rows(statement: str) -> list[tuple]:
    with closing(sqlite3.connect("t.db")) as connection:
        return connection.execute(statement).fetchall()


RUN = ("run", "urls", "--db", "sqlite:///t.db", "--fetch", "mine:fetch", "--hold-for", "1s")


def _go() -> None:
    Path("go").touch()


def test_a_killed_run_goes_on_where_it_stopped(spawn):
    """kill -9, then the same command: only what was in flight is fetched twice."""
    first = spawn(*RUN)
    _until(_calls)
    first.kill()
    first.wait()
    second = spawn(*RUN, "-o", "out")
    _until(lambda: len(_calls()) >= 2)
    _go()
    _, said = second.communicate(timeout=30)
    assert second.returncode == 0
    assert "goes on: 0 of 5 targets" in said
    assert "in another run's hands" in said
    assert _calls() == ["u0", "u0", "u1", "u2", "u3", "u4"]
    lines = Path("out").read_text().splitlines()
    assert [json.loads(line)["status"] for line in lines] == ["done"] * 5


def test_two_runs_of_one_list_share_its_job(spawn):
    """Started at once, both work on one job, each target once, and both report it done."""
    runs = [spawn(*RUN, "--json") for _ in range(2)]
    _until(_calls)
    _go()
    told = [json.loads(run.communicate(timeout=30)[0]) for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert told[0]["jobs"][0]["id"] == told[1]["jobs"][0]["id"]
    assert [each["targets"]["done"] for each in told] == [5, 5]
    assert sorted(_calls()) == [f"u{n}" for n in range(5)]


def test_ctrl_c_cancels(spawn):
    """SIGINT cancels the job, lets the fetch in flight end, and exits 130."""
    run = spawn(*RUN, "-o", "out")
    _until(_calls)
    run.send_signal(signal.SIGINT)
    shown, said = run.communicate(timeout=20)
    assert run.returncode == 130
    assert "Cancelling" in said
    assert "cancelled: " in shown
    assert "Traceback" not in said
    assert _rows("SELECT status FROM batch_job") == [("cancelled",)]
    assert _rows("SELECT count(*) FROM batch_target WHERE status = 'running'") == [(0,)]
    assert not Path("out").exists()


def test_ctrl_c_ends_a_run_whose_fetch_does_not_listen(spawn):
    """A fetch that never looks at ``cancelled`` is left behind, its target put back."""
    run = spawn(*RUN[:-3], "mine:stubborn")
    _until(_calls)
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=20)
    assert run.returncode == 130
    assert _rows("SELECT count(*) FROM batch_target WHERE status = 'running'") == [(0,)]


def test_a_second_ctrl_c_leaves_at_once(spawn):
    """The second SIGINT ends the process while the first is still being waited for."""
    run = spawn(*RUN[:-3], "mine:stubborn")
    _until(_calls)
    run.send_signal(signal.SIGINT)
    _until(lambda: _rows("SELECT status FROM batch_job") == [("cancelled",)])
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=20)
    assert run.returncode == 130


WORKER = (
    "worker",
    "--db",
    "sqlite:///t.db",
    "--fetch",
    "mine:fetch",
    "--resolve-caller",
    "mine:anybody",
    "--queue",
    "run:mine:fetch",
)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_closes_on_a_signal(spawn, invoke, number):
    """SIGTERM or SIGINT: the fetch in flight ends, the worker exits 0 without a traceback."""
    assert invoke("db", "upgrade", "--db", "sqlite:///t.db").exit_code == 0
    worker = spawn(*WORKER)
    assert "Working on queue run:mine:fetch" in worker.stderr.readline()
    worker.send_signal(number)
    _, said = worker.communicate(timeout=20)
    assert worker.returncode == 0
    assert "Traceback" not in said


def test_a_worker_takes_the_jobs_of_its_queue(spawn, invoke):
    """A worker goes on with what a killed run left, and its close puts the rest back."""
    run = spawn(*RUN)
    _until(_calls)
    run.kill()
    run.wait()
    worker = spawn(*WORKER, "--hold-for", "1s")
    _until(lambda: len(_calls()) >= 2)
    _go()
    _until(lambda: _rows("SELECT status FROM batch_job") == [("done",)])
    worker.send_signal(signal.SIGTERM)
    _, said = worker.communicate(timeout=20)
    assert worker.returncode == 0
    assert "u1" not in said


def test_the_demo_leaves_nothing_behind_on_ctrl_c(spawn, tmp_path):
    """SIGINT ends the demo with 130; its database and its server are gone."""
    (tmp_path / "tmp").mkdir()
    demo = spawn("demo", env={"TMPDIR": str(tmp_path / "tmp")})
    _until(lambda: list((tmp_path / "tmp").iterdir()))
    assert demo.stdout.readline()
    demo.send_signal(signal.SIGINT)
    _, said = demo.communicate(timeout=20)
    assert demo.returncode == 130
    assert "Traceback" not in said
    assert list((tmp_path / "tmp").iterdir()) == []
