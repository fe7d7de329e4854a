"""What the command is asked for, and how it refuses what makes no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.arguments import parse
from benchmarks.runs import PARTS

pytestmark = pytest.mark.checkout


def test_without_arguments_everything_is_measured_five_times() -> None:
    """Medians of five, every part, in their order."""
    args = parse([])
    assert (args.only, args.rounds, args.short) == (list(PARTS), 5, False)


def test_the_short_form_leaves_out_what_takes_long() -> None:
    """Peers, which are installed first, processes, removals, waits and memory; fewer rounds."""
    args = parse(["--short"])
    left_out = set(PARTS) - set(args.only)
    assert (args.rounds, left_out) == (2, {"peers", "processes", "start", "stalls", "memory"})
    assert parse(["--short", "--only", "peers"]).only == ["peers"]


def test_parts_come_in_their_own_order_and_once() -> None:
    """Names with commas and repeated options mean the same."""
    assert parse(["--only", "idle,sqlite", "--only", "idle"]).only == ["sqlite", "idle"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--only", "sqlit"], "no part 'sqlit'; there are: sqlite, postgresql"),
        (["--only", ""], "no part ''"),
        (["--rounds", "0"], "must be a whole number from 1 on, not '0'"),
        (["--rounds", "-1"], "must be a whole number from 1 on, not '-1'"),
        (["--rounds", "many"], "must be a whole number from 1 on, not 'many'"),
        (["--folder", "nowhere"], "no folder 'nowhere'"),
        (["--from", "nowhere.json"], "no file 'nowhere.json'"),
        (["--json", "nowhere/x.json"], "can't write to 'nowhere/x.json'"),
        (["--short", "--write-docs"], "--short is a guard"),
        (["--only", "sqlite", "--write-docs"], "--only leaves rows out"),
        (["--from", __file__, "--only", "sqlite"], "--from measures nothing"),
        (["--from", __file__, "--rounds", "1"], "--from measures nothing"),
    ],
)
def test_nonsense_is_one_clear_line(
    given: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ends with 2 before anything is started, and says what would be right."""
    with pytest.raises(SystemExit) as ended:
        parse(given)
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


def test_a_file_to_write_is_checked_first(tmp_path: Path) -> None:
    """A folder can't be written to; a new file in one can."""
    assert parse(["--json", str(tmp_path / "x.json")]).json == tmp_path / "x.json"
    with pytest.raises(SystemExit):
        parse(["--json", str(tmp_path)])
