"""One run: parts that fail or are missing, the second try of the short form, a real small part."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from batchmill.errors import InvalidInput
from benchmarks import child, mill, runs
from benchmarks import databases as databases_module
from benchmarks.child import Child, ChildFailed, call
from benchmarks.context import Context
from benchmarks.databases import Databases, Missing, NotDurable
from benchmarks.parts import drains
from benchmarks.peers import PEERS
from benchmarks.peers.environments import NotInstalled, requirement
from benchmarks.report import Report
from benchmarks.shape import SHORT, Shape
from tests.support import servers

pytestmark = pytest.mark.checkout


@pytest.fixture
def databases(tmp_path: Path) -> Iterator[Databases]:
    made = Databases(tmp_path)
    yield made
    made.close()


def run(monkeypatch: pytest.MonkeyPatch, part: object, *, short: bool = False) -> Report:
    monkeypatch.setitem(runs.PARTS, "sqlite", runs.Part(part, "a stand-in"))  # type: ignore[arg-type]
    return runs.run(["sqlite"], rounds=1, short=short, folder=None, json=None)


def test_a_part_that_fails_is_a_failure_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run goes on, and ends with 1."""

    def fail(_context: Context) -> None:
        raise ChildFailed("it broke")

    report = run(monkeypatch, fail)
    assert report.failed == ["sqlite"]
    assert report.missing == {"sqlite": "ChildFailed: it broke"}


@pytest.mark.parametrize(
    "error", [queue.Empty(), InvalidInput("no"), KeyError("n"), NotDurable("fsync is off")]
)
def test_an_accident_of_a_part_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Whatever goes wrong: what the part had found is dropped, and the next one is measured."""

    def fail(context: Context) -> None:
        context.report.value("drain-sqlite-full-1", 0.9)
        raise error

    def measure(context: Context) -> None:
        context.report.value("drain-mariadb-1", 0.4)

    monkeypatch.setitem(runs.PARTS, "sqlite", runs.Part(fail, "a stand-in"))
    monkeypatch.setitem(runs.PARTS, "mariadb", runs.Part(measure, "a stand-in"))
    report = runs.run(["sqlite", "mariadb"], rounds=1, short=False, folder=None, json=None)
    assert (report.failed, list(report.missing)) == (["sqlite"], ["sqlite"])
    assert report.values == {"drain-mariadb-1": [0.4]}


def test_a_second_try_replaces_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Subjects and extras of the first are gone too."""
    tries = []

    def measure(context: Context) -> None:
        tries.append(1)
        context.report.add("floor", "sqlite-full", {"drain": float(len(tries))})
        context.report.value("an extra", float(len(tries)))
        if len(tries) == 1:
            raise ChildFailed("it broke")

    report = run(monkeypatch, measure, short=True)
    assert (report.failed, report.missing) == ([], {})
    assert report.values == {"an extra": [2.0]}
    assert [subject.rounds for subject in report.subjects] == [[{"drain": 2.0}]]


def test_a_server_that_loses_commits_is_not_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is looked at when it starts, for whichever part."""
    asked = [("version", ("SELECT 'a'", None)), ("fsync", ("SELECT 'off'", "on"))]
    monkeypatch.setitem(databases_module._DURABLE, "postgresql", asked)
    monkeypatch.setattr(databases_module, "_check_installed", lambda _name: None)
    monkeypatch.setattr(servers, "postgresql", lambda folder: nullcontext(f"sqlite:///{folder}/a"))
    made = Databases(tmp_path)
    with (
        pytest.raises(NotDurable, match="postgresql: fsync is off, not on"),
        made.fresh("postgresql"),
    ):
        pass


@pytest.mark.parametrize(("required", "failed"), [("", []), ("1", ["sqlite"])])
def test_a_missing_database_fails_only_where_it_is_required(
    monkeypatch: pytest.MonkeyPatch, required: str, failed: list[str]
) -> None:
    """As for the tests: elsewhere its rows say that it isn't there."""
    monkeypatch.setenv(runs.REQUIRE, required)

    def miss(_context: Context) -> None:
        raise Missing("not installed")

    report = run(monkeypatch, miss)
    assert (report.missing, report.failed) == ({"sqlite": "not installed"}, failed)


@pytest.mark.parametrize(("values", "accidents"), [([0.01, 0.4], 0), ([0.01, 0.02], 1)])
def test_the_short_form_tries_an_accident_once_more(
    monkeypatch: pytest.MonkeyPatch, values: list[float], accidents: int
) -> None:
    """Only the second try counts; a machine may have been busy."""
    left = iter(values)

    def measure(context: Context) -> None:
        context.report.value("drain-sqlite-full-1", next(left))

    report = run(monkeypatch, measure, short=True)
    assert len(report.accidents()) == accidents
    assert next(left, None) is None


def test_a_good_short_run_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """One measurement is enough."""
    calls = []

    def measure(context: Context) -> None:
        calls.append(1)
        context.report.value("drain-sqlite-full-1", 0.4)

    run(monkeypatch, measure, short=True)
    assert calls == [1]


def test_the_floor_and_batchmill_store_the_same_work(
    monkeypatch: pytest.MonkeyPatch, databases: Databases, tmp_path: Path
) -> None:
    """A real round of a small shape: both sides verify what they stored."""
    monkeypatch.setattr(drains, "WORKERS", (2,))
    report = Report(sizes=replace(SHORT, shape=Shape(2, 3)), rounds=1)
    drains._round(Context(report, databases, tmp_path), "sqlite-normal", "")
    assert [subject.name for subject in report.subjects] == ["floor", "batchmill"]
    assert all(set(each.rounds[0]) == {"submit", "drain", "read"} for each in report.subjects)
    assert list(report.values) == ["drain-sqlite-normal-2"]
    assert list(tmp_path.iterdir()) == []


def test_a_child_that_fails_tells_the_last_line() -> None:
    """What went wrong there is said here, without the whole traceback."""
    with pytest.raises(ChildFailed, match=r"benchmarks.shape:nothing: .*no attribute 'nothing'"):
        call("benchmarks.shape:nothing")


def test_a_child_is_gone_after_its_block() -> None:
    """One that waits for a word that never comes is ended."""
    with Child("benchmarks.child:wait_for_go") as waiting:
        waiting.wait_ready()
        assert waiting._process.poll() is None
    assert waiting._process.poll() is not None


def test_a_child_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may wait for whatever it likes: after its time it has failed, without a word."""
    monkeypatch.setattr(child, "PATIENCE", 1.0)
    with pytest.raises(ChildFailed, match=r"wait_for_go: ended without a word, with -9"):
        call("benchmarks.child:wait_for_go")


@pytest.mark.parametrize("outcome", ["done", "partial", "failed", "cancelled"])
def test_a_drain_ends_however_its_jobs_do(outcome: str) -> None:
    """A job that isn't done is for the check after the drain, not to be waited for for ever."""
    meter = mill.Meter(1)
    meter.job("created")
    assert not meter.finished.is_set()
    meter.job(outcome)
    assert meter.finished.is_set()


def test_every_peer_is_in_the_extra() -> None:
    """The requirement of each comes from pyproject, without its marker."""
    assert {requirement(peer.requirement).partition(">")[0] for peer in PEERS} == {
        "huey",
        "litequeue",
        "pgqueuer[asyncpg]",
    }
    with pytest.raises(NotInstalled, match="celery is not in the extra bench"):
        requirement("celery")
