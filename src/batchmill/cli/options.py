"""Options that several commands share, and how they are explained."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Final

import typer

from batchmill.cli.database import SCHEMA_VARIABLE, URL_VARIABLE
from batchmill.cli.values import parse_bytes, parse_duration, parse_wait

# Defaults as people would write them: typer shows them so in --help, and parses them.
A_DAY: Final[Any] = "24h"
FIVE_SECONDS: Final[Any] = "5s"
TEN_SECONDS: Final[Any] = "10s"
THIRTY_SECONDS: Final[Any] = "30s"
A_MINUTE: Final[Any] = "60s"
SIXTEEN_MIB: Final[Any] = "16MiB"
SIXTY_FOUR_MIB: Final[Any] = "64MiB"

Db = Annotated[
    str,
    typer.Option(
        "--db",
        envvar=URL_VARIABLE,
        metavar="URL",
        help="The database: sqlite:///file.db, postgresql://… or mariadb://…",
    ),
]
Schema = Annotated[
    str | None,
    typer.Option(
        "--schema",
        envvar=SCHEMA_VARIABLE,
        metavar="NAME",
        help="The schema of batchmill's tables, on PostgreSQL.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="For programs: JSON on stdout.")]
JobId = Annotated[str, typer.Argument(metavar="JOB", help="The job's id.", show_default=False)]
Ttl = Annotated[
    timedelta,
    typer.Option(
        "--ttl",
        parser=parse_duration,
        metavar="TIME",
        help="How long a job is kept after its last use: 24h, 30m, 90s.",
    ),
]
MaxBytes = Annotated[
    int,
    typer.Option(
        "--max-bytes",
        parser=parse_bytes,
        metavar="SIZE",
        help="How much stored results may take: 64MiB, 10MB, 5000.",
    ),
]
Fetch = Annotated[
    str,
    typer.Option(
        "--fetch",
        metavar="MODULE:FUNCTION",
        help="The function that fetches a target: fetch(context, caller, target). It is "
        "imported, from the current folder too.",
    ),
]
Hold = Annotated[
    timedelta,
    typer.Option(
        "--hold-for",
        parser=parse_wait,
        metavar="TIME",
        help="How long a target of a killed runner stays held.",
    ),
]
