"""``batchmill worker``: a runner in a process of its own, for jobs that others submit."""

from __future__ import annotations

import signal
from datetime import timedelta
from typing import Annotated, Final

import typer

from batchmill.cli import options, screen
from batchmill.cli.database import DEFAULT_URL, Place, open_store
from batchmill.cli.interrupts import Interrupts
from batchmill.cli.loading import load_function
from batchmill.cli.logs import everything_to
from batchmill.cli.run import MOST_WORKERS
from batchmill.cli.values import parse_duration
from batchmill.runner import Runner, RunnerConfig

_FOREVER: Final = 3600.0


def worker(
    *,
    fetch: options.Fetch,
    resolve_caller: Annotated[
        str,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="The function that knows callers: resolve_caller(name, caller_class) gives one, "
            "or None for nobody.",
        ),
    ],
    db: options.Db = DEFAULT_URL,
    schema: options.Schema = None,
    queue: Annotated[str, typer.Option(metavar="NAME", help="The queue to work on.")] = "default",
    workers: Annotated[
        int, typer.Option("--workers", "-w", min=1, max=MOST_WORKERS, help="Targets at a time.")
    ] = 1,
    max_bytes: options.MaxBytes = options.SIXTY_FOUR_MIB,
    ttl: options.Ttl = options.A_DAY,
    hold_for: options.Hold = options.A_MINUTE,
    grace: Annotated[
        timedelta,
        typer.Option(
            parser=parse_duration,
            metavar="TIME",
            help="How long fetches in flight may take to end when the worker does.",
        ),
    ] = options.TEN_SECONDS,
) -> None:
    """Work on the jobs of a queue until SIGTERM or Ctrl-C; exit 0.

    Give it the application's own --ttl and --max-bytes:
    a worker sweeps and evicts by them.
    """
    config = RunnerConfig(
        workers=workers, worker_limit=workers, max_bytes=max_bytes, ttl=ttl, hold_for=hold_for
    )
    fetcher = load_function("--fetch", fetch)
    resolver = load_function("--resolve-caller", resolve_caller)
    console = screen.err()
    with (
        open_store(Place(db, schema)) as store,
        Interrupts(signal.SIGTERM, signal.SIGINT) as interrupts,
    ):
        runner = Runner(
            store,
            fetcher,
            config,
            resolve_caller=resolver,
            queue=queue,
            logger=everything_to(console),
        )
        console.print(screen.cell(f"Working on queue {queue}; Ctrl-C or SIGTERM ends it."))
        runner.start()
        try:
            while not interrupts.wait(_FOREVER):
                pass
            console.print("Closing.")
        finally:
            runner.close(timeout=grace.total_seconds())
