"""Fail where a public name isn't fully typed: reads what ``pyright --verifytypes`` found.

Only what applications import counts: the names of the public packages and, with them, the
members of the classes among them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PUBLIC = ("batchmill", "batchmill.runner", "batchmill.store", "batchmill.store.migrate")


def untyped(symbols: list[dict[str, Any]]) -> list[str]:
    """The public names whose type another checker might see differently, or not at all."""
    return [
        symbol["name"]
        for symbol in symbols
        if symbol["name"].rpartition(".")[0] in PUBLIC
        and (not symbol["isTypeKnown"] or symbol["isTypeAmbiguous"])
    ]


def main(path: str) -> None:
    """Print what is wrong and exit 1, or print how much was looked at."""
    symbols = json.loads(Path(path).read_text())["typeCompleteness"]["symbols"]
    wrong = untyped(symbols)
    for name in wrong:
        members = [s for s in symbols if f".{name.rpartition('.')[2]}" in s["name"]]
        for message in (d["message"] for s in members for d in s["diagnostics"]):
            print(f"{name}: {message}")
    if wrong or not symbols:
        raise SystemExit(f"{len(wrong)} public names aren't fully typed")
    print(f"every public name is typed ({len(symbols)} symbols seen)")


main(sys.argv[1])
