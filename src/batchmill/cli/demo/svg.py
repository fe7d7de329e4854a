"""The demo's screen as an SVG picture, for documentation."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Final

from rich.console import Console

from batchmill.cli.demo.picture import TITLE, picture
from batchmill.cli.demo.scenario import Frame
from batchmill.cli.errors import CommandError

COLUMNS: Final = 100


def save_svg(path: Path, frame: Frame) -> None:
    """Write the picture of one frame; raises ``CommandError``."""
    console = Console(
        record=True,
        width=COLUMNS,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
        _environ={},
    )
    console.print(TITLE)
    console.print(picture(frame))
    try:
        console.save_svg(str(path), title="batchmill demo")
    except OSError as error:
        raise CommandError(f"can't write {path}: {error.strerror}") from error
