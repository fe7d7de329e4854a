"""What the command is asked for, checked before anything is started."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.runs import PARTS

ROUNDS, SHORT_ROUNDS = 5, 2


def parse(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The arguments; ends the program with a clear line where they make no sense.

    ``only`` is the list of parts, in their order.
    """
    parser = _parser()
    args = parser.parse_args(given)
    if args.saved and (args.only or args.short or args.json or args.rounds):
        parser.error("--from measures nothing: leave out --only, --short, --rounds and --json")
    if args.short and args.write_docs:
        parser.error("--short is a guard: its figures don't belong in the docs")
    if args.only and args.write_docs and set(args.only) != set(PARTS):
        parser.error("--only leaves rows out: keep its figures with --json, join them with --from")
    if args.rounds is None:
        args.rounds = SHORT_ROUNDS if args.short else ROUNDS
    chosen = set(args.only) or set(PARTS)
    if args.short and not args.only:
        chosen -= {name for name, part in PARTS.items() if not part.in_short}
    args.only = [name for name in PARTS if name in chosen]
    return args


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure batchmill beside hand-written floors and its nearest peers.",
        epilog="Parts: " + "; ".join(f"{name}: {part.about}" for name, part in PARTS.items()) + ".",
    )
    parser.add_argument(
        "--only", metavar="PART", type=_parts, action="extend", default=[],
        help="run these parts only: a name, or several with commas; may be given again",
    )  # fmt: skip
    parser.add_argument("--rounds", type=_rounds, help=f"rounds, whose medians count ({ROUNDS})")
    parser.add_argument(
        "--short", action="store_true",
        help="a guard for the checks: less work; exits with 1 where a ratio is under half of the "
        "required one",
    )  # fmt: skip
    parser.add_argument("--json", type=_new_file, metavar="FILE", help="write all values there")
    parser.add_argument(
        "--from", dest="saved", type=_file, metavar="FILE", action="append", default=[],
        help="measure nothing: print what --json wrote; given again, what a later file has "
        "measured stands in place of the same in those before",
    )  # fmt: skip
    parser.add_argument(
        "--write-docs", action="store_true",
        help="put the tables and plots into docs/benchmark.md and beside it",
    )  # fmt: skip
    parser.add_argument(
        "--folder", type=_folder,
        help="where the databases go; the system's own for such files if left out",
    )  # fmt: skip
    return parser


def _parts(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in PARTS:
            raise argparse.ArgumentTypeError(f"no part {name!r}; there are: {', '.join(PARTS)}")
    return names


def _rounds(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 on, not {text!r}")
    return int(text)


def _folder(text: str) -> Path:
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"no folder {text!r}")
    return Path(text)


def _file(text: str) -> Path:
    if not Path(text).is_file():
        raise argparse.ArgumentTypeError(f"no file {text!r}")
    return Path(text)


def _new_file(text: str) -> Path:
    path = Path(text)
    if path.is_dir() or not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"can't write to {text!r}: no such folder")
    return path
