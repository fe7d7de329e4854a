"""The demo's screen as an SVG picture, for documentation."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Final

from rich.console import Console

from batchmill.cli.demo.picture import TITLE, picture
from batchmill.cli.demo.scenario import Frame
from batchmill.cli.errors import CommandError

COLUMNS: Final = 100
_OUTSIDE_FONT: Final = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""A picture fetches no font from anywhere; any monospaced one will do."""


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
    picture_text = _OUTSIDE_FONT.sub("", console.export_svg(title="batchmill demo"))
    try:
        path.write_text(picture_text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"can't write {path}: {error.strerror}") from error
