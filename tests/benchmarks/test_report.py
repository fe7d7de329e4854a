"""Medians, ratios within a round, JSON, tables, plots and the docs."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import __main__, docs, plot, tables
from benchmarks.child import ChildFailed
from benchmarks.goals import GOALS
from benchmarks.parts.growth import key
from benchmarks.parts.stalls import _waits
from benchmarks.report import Report, from_json
from benchmarks.shape import FULL, SHORT, Shape

pytestmark = pytest.mark.checkout

SIZES = replace(FULL, shape=Shape(2, 3))

PAGE = "# Fast\n" + "".join(f"<!-- {name} -->\nold\n<!-- /{name} -->\n" for name in docs.SECTIONS)


def filled() -> Report:
    """A report of three rounds whose rates jump while the ratio stays about a half."""
    report = Report(machine={"date": "2026-11-30", "Python": "3.11"}, sizes=SIZES, rounds=3)
    for floor, own in ((100.0, 60.0), (1000.0, 500.0), (10.0, 4.0)):
        base = {"submit": floor, "drain": floor, "read": floor}
        report.add("floor", "sqlite-full", base)
        report.add("batchmill", "sqlite-full", {"drain": own}, base, workers=1)
        report.value("drain-sqlite-full-1", own / floor)
    for place, size in enumerate(FULL.kept):
        report.value(key("drain", "sqlite-normal", size), 100.0 + place)
    report.missing["litequeue"] = "it needs another Python"
    report.missing["mariadb"] = "MariaDB is not installed"
    return report


def whole() -> Report:
    """The same with something for every goal."""
    report = filled()
    for goal in GOALS:
        if goal.key not in report.values and goal.part not in report.missing:
            report.value(goal.key, goal.required or 1.0)
    return report


def test_a_ratio_is_taken_within_its_round() -> None:
    """The median of the ratios, not the ratio of the medians."""
    report = filled()
    (floor, own) = report.subjects
    assert own.median("drain") == 60.0
    assert own.ratio("drain") == 0.5
    assert floor.ratio("drain") == 1.0
    assert report.figure("drain-sqlite-full-1") == 0.5


def test_a_column_that_was_not_measured_has_no_figure() -> None:
    """None rather than nought, for a peer that keeps no results."""
    own = filled().subjects[1]
    assert (own.median("read"), own.ratio("read")) == (None, None)


def test_json_brings_back_the_whole_report(tmp_path: Path) -> None:
    """What --json wrote is what --from reads."""
    path = tmp_path / "report.json"
    path.write_text(filled().to_json(), encoding="utf-8")
    assert from_json(path) == filled()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"figures": 1}'])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    """A file that --json didn't write is named, without a traceback of parsing."""
    path = tmp_path / "other.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="other.json: is not what --json writes"):
        from_json(path)


def test_the_table_shows_what_was_measured_or_why_not() -> None:
    """A goal with a value, one whose part is missing, and none of the parts that weren't asked."""
    rows = {row[0]: row for row in tables.goal_rows(filled())}
    assert rows["drain, SQLite FULL, 1 worker ÷ floor"][1:] == (
        "0.50",
        "≥ 0.33",
        "≥ 0.5",
        "aim reached",
    )
    missing = rows["drain, MariaDB, 32 workers ÷ floor"]
    assert missing[-1] == "not measured: MariaDB is not installed"
    assert not any("import" in title for title in rows)


def test_a_peer_that_is_not_there_says_so_in_its_row() -> None:
    """It doesn't vanish from the figures; a part that is missing has its rows elsewhere."""
    rows = {row[0]: row for row in tables.figure_rows(filled())}
    assert rows["litequeue"][-1] == "not measured: it needs another Python"
    assert "mariadb" not in rows


def test_the_rows_are_named_after_what_was_done() -> None:
    """The short form does less, and each title says how much it was."""
    for sizes, title in ((FULL, "with 1,000,000 kept jobs"), (SHORT, "with 30,000 kept jobs")):
        report = Report(sizes=sizes, rounds=1)
        for goal in GOALS:
            report.value(goal.key, 1.0)
        titles = [row[0] for row in tables.goal_rows(report)]
        assert any(title in each for each in titles)
        assert not any("{" in each for each in titles)


def test_the_short_form_only_guards() -> None:
    """It does too little to reach an aim: a value is no accident, or it is one."""
    report = Report(sizes=SHORT, rounds=1)
    report.value("drain-sqlite-full-1", 0.9)
    report.value("read-sqlite-full", 0.01)
    report.value("drain-mariadb-1", 0.9)
    assert [row[1:] for row in tables.goal_rows(report)[1:]] == [
        ("0.90", "≥ 0.165", "ok"),
        ("0.90", "", "reported"),
        ("0.01", "≥ 0.1", "accident"),
    ]


def test_a_row_of_other_values_than_the_rounds_says_how_many() -> None:
    """What is measured once is no median of three, and of waits the longest counts."""
    report = filled()
    report.value("memory-targets-sqlite", 100.0)
    for wait in (3.0, 1.0, 2.0):
        report.value("stall-sweep-sqlite", wait)
        report.value("longest wait of all", wait)
    shown = [row[1] for row in tables.goal_rows(report)]
    assert "100.0 MiB (of 1)" in shown
    assert "3.0 ms (longest of 3)" in shown
    assert ("longest wait of all", "3.00 (longest of 3)") in tables.extra_rows(report)


def test_columns_stand_in_line() -> None:
    """The first to the left, figures to the right, the last as it is."""
    text = tables.as_text([("", "a", "end"), ("name", "1,000", "x"), ("n", "1", "")])
    assert text == "          a  end\nname  1,000  x\nn         1"


def test_a_plot_is_well_formed_and_has_a_line_for_each_database() -> None:
    """The SVG parses, and names what it draws."""
    for chart, names in (
        (plot.drain_chart(filled()), ["SQLite FULL"]),
        (plot.growth_chart(filled()), ["drain, SQLite NORMAL"]),
    ):
        root = ET.fromstring(plot.draw(chart))
        texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
        assert set(names) <= set(texts)
        assert len(list(root.iter("{http://www.w3.org/2000/svg}polyline"))) == len(names)


def test_a_plot_stays_inside_its_frame() -> None:
    """Every mark is within the picture, whatever the values."""
    chart = plot.Chart("t", "x", "y", {"a": [(1, 0.0), (1e6, 12345.0)]}, level=1.0)
    root = ET.fromstring(plot.draw(chart))
    for circle in root.iter("{http://www.w3.org/2000/svg}circle"):
        assert plot.LEFT <= float(circle.attrib["cx"]) <= plot.WIDTH - plot.RIGHT
        assert plot.TOP <= float(circle.attrib["cy"]) <= plot.HEIGHT - plot.BOTTOM


def test_the_docs_get_the_tables_between_their_markers(tmp_path: Path) -> None:
    """Old figures go, what stands around them stays, and the plots lie beside the page."""
    page = tmp_path / "benchmark.md"
    page.write_text(PAGE, encoding="utf-8")
    written = docs.write(whole(), page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Fast\n<!-- goals -->\nMeasured on 2026-11-30")
    assert "old" not in text
    assert "| drain, SQLite FULL, 1 worker ÷ floor | 0.50 |" in text
    assert {path.name for path in written} == {"benchmark.md", *docs.PLOTS}


def test_docs_without_their_markers_are_left_alone(tmp_path: Path) -> None:
    """A page that was changed by hand is not written over."""
    page = tmp_path / "benchmark.md"
    page.write_text("# Fast\n", encoding="utf-8")
    with pytest.raises(docs.DocsChanged, match="<!-- goals -->"):
        docs.write(whole(), page)
    assert page.read_text(encoding="utf-8") == "# Fast\n"


def test_docs_get_no_part_of_the_tables(tmp_path: Path) -> None:
    """Neither what some parts measured nor a short run replaces what is on the page."""
    page = tmp_path / "benchmark.md"
    page.write_text(PAGE, encoding="utf-8")
    with pytest.raises(docs.NotWhole, match="would lack what was not measured: sqlite, postgresql"):
        docs.write(filled(), page)
    short = whole()
    short.sizes = SHORT
    with pytest.raises(docs.NotWhole, match="the short form"):
        docs.write(short, page)
    assert page.read_text(encoding="utf-8") == PAGE


def test_a_saved_short_run_is_judged_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file says what it is: an accident in it is a failure, and it stays out of the docs."""
    path = tmp_path / "report.json"
    report = whole()
    report.sizes = SHORT
    report.values["read-sqlite-full"] = [0.01]
    path.write_text(report.to_json(), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--from", str(path)])
    assert __main__.main() == 1
    assert "an accident: read back, rows, SQLite FULL ÷ floor: 0.01" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--from", str(path), "--write-docs"])
    with pytest.raises(SystemExit, match="error: the figures of the short form"):
        __main__.main()


def test_the_page_of_this_checkout_has_the_markers() -> None:
    """--write-docs finds where to write."""
    text = docs.PAGE.read_text(encoding="utf-8")
    for name in docs.SECTIONS:
        text = docs.replace(text, name, "new")
    assert text.count("\nnew\n") == len(docs.SECTIONS)


def test_only_accidents_of_goals_count() -> None:
    """An extra has nothing to reach."""
    report = Report()
    report.value("longest wait of something", 0.0)
    report.value(GOALS[0].key, 0.01)
    assert report.accidents() == [GOALS[0]]


def test_a_wait_counts_when_it_overlaps_the_removal() -> None:
    """A call that began before the removal and ended in it waited for it."""
    calls = [(0.0, 1.0), (1.0, 3.0), (3.0, 4.0), (9.0, 20.0)]
    assert _waits(calls, (2.0, 5.0)) == [1.0, 2.0]
    with pytest.raises(ChildFailed, match="the writer called nothing"):
        _waits([(5.0, 6.0)], (2.0, 5.0))


def other() -> Report:
    """Another run on the same machine and day, of one round."""
    return Report(machine=dict(filled().machine), sizes=SIZES, rounds=1)


def test_two_runs_together_have_what_either_measured() -> None:
    """The later one's values stand; what was missing and then measured is missing no more."""
    first, later = filled(), other()
    polling = "submit → start from another process, polling every second, MariaDB"
    first.missing |= {polling: "MariaDB is not installed", "huey": "can't be installed"}
    first.failed.append("mariadb")
    later.value("drain-mariadb-32", 2.0)
    later.value("drain-sqlite-full-1", 0.9)
    later.add("litequeue 0.14 (Python 3.13.0)", "sqlite-normal", {"drain": 1.0})
    later.add("huey, no sync at all 3.5.4", "sqlite-normal", {"drain": 2.0})
    later.value(f"{polling}, p50, ms", 500.0)
    later.add("floor", "sqlite-full", {"drain": 7.0})
    first.merge(later)
    assert (first.rounds, first.failed) == (1, [])
    assert first.missing == {"huey": "can't be installed"}
    assert first.figure("drain-sqlite-full-1") == 0.9
    assert [subject.median("drain") for subject in first.subjects] == [60.0, 1.0, 2.0, 7.0]


def test_runs_of_other_work_stay_apart() -> None:
    """A short run's figures are not put among those of a whole one."""
    with pytest.raises(ValueError, match="different work"):
        filled().merge(Report())


def test_runs_of_other_machines_stay_apart() -> None:
    """What differs is named; the day may, and then both are told."""
    first, later = filled(), other()
    later.machine["date"] = "2026-12-01"
    first.merge(later)
    assert first.machine == {"date": "2026-11-30 and 2026-12-01", "Python": "3.11"}
    first.merge(later)
    assert first.machine["date"] == "2026-11-30 and 2026-12-01"
    later.machine["Python"] = "3.12"
    later.machine["cores"] = "64"
    with pytest.raises(ValueError, match=r"differ in: Python, cores"):
        first.merge(later)
