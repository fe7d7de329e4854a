"""``batchmill run``: a list of targets, fetched here, whatever happens on the way."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Final

import typer

from batchmill.cli import options, outfile, progress, report, screen
from batchmill.cli.database import DEFAULT_URL, Place, open_store
from batchmill.cli.errors import FAILED, INTERRUPTED, UsageError
from batchmill.cli.fetchers import DEFAULT, FetchLimits, WebFetcher
from batchmill.cli.inputs import read_targets
from batchmill.cli.interrupts import Interrupts
from batchmill.cli.loading import load_function
from batchmill.cli.logs import warnings_to
from batchmill.cli.running import NamedCaller, Run, Watched, queue_of, resolve_named, run_config
from batchmill.cli.values import parse_bytes, parse_wait
from batchmill.records import JobStatus
from batchmill.runner import Hooks, Runner, Target
from batchmill.validation import check_name

MOST_WORKERS: Final = 256
_PATIENCE: Final = 2.0
"""Seconds that a fetch is given to end when the run does; then it is left behind."""


@dataclass(frozen=True, slots=True)
class Order:
    """What one call of the command asks for."""

    targets: list[Target]
    place: Place
    fetch: str
    caller: NamedCaller
    workers: int
    hold_for: timedelta
    ttl: timedelta
    limits: FetchLimits
    out: str | None
    as_json: bool


def run(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            show_default=False,
            help="The targets: a URL a line, or a line of JSON like "
            '{"url": "https://…", "options": {}}. "-" is stdin.',
        ),
    ],
    *,
    db: options.Db = DEFAULT_URL,
    schema: options.Schema = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help='Results as JSON Lines, in order; "-" is stdout.'
        ),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(
            "--workers", "-w", min=1, max=MOST_WORKERS, help="Targets at a time; as many jobs."
        ),
    ] = 1,
    fetch: options.Fetch = DEFAULT,
    caller: Annotated[str, typer.Option(metavar="NAME", help="Who submits.")] = "cli",
    timeout: Annotated[
        timedelta,
        typer.Option(
            parser=parse_wait,
            metavar="TIME",
            help="For one target, with the built-in fetcher.",
        ),
    ] = options.THIRTY_SECONDS,
    max_size: Annotated[
        int,
        typer.Option(
            parser=parse_bytes,
            metavar="SIZE",
            help="Of one target, with the built-in fetcher.",
        ),
    ] = options.SIXTEEN_MIB,
    ttl: options.Ttl = options.A_DAY,
    hold_for: options.Hold = options.FIVE_SECONDS,
    as_json: options.Json = False,
) -> None:
    """Fetch a list of targets, and keep the results in a database.

    Killed and run again, it goes on where it stopped.
    Run again when it has finished, it shows the stored results.

    Exit code 0: all done; 1: some failed; 2: wrong usage; 130: Ctrl-C.
    """
    _check_outputs(out, as_json)
    order = Order(
        targets=read_targets(file),
        place=Place(db, schema),
        fetch=fetch,
        caller=NamedCaller(check_name("--caller", caller, least=1)),
        workers=workers,
        hold_for=hold_for,
        ttl=ttl,
        limits=FetchLimits(timeout.total_seconds(), max_size),
        out=out,
        as_json=as_json,
    )
    raise typer.Exit(carry_out(order))


def carry_out(order: Order) -> int:
    """Run it; the exit code."""
    with ExitStack() as stack:
        fetch = stack.enter_context(_fetcher(order))
        store = stack.enter_context(open_store(order.place, create=True))
        interrupts = stack.enter_context(Interrupts(signal.SIGINT))
        watched = Watched(fetch)
        work = Run(store, _runner(store, watched, order, interrupts), watched)
        work.submit(order.caller, order.targets, order.workers)
        report.announce(screen.err(), work, order.place, store.now(), order.hold_for)
        interrupted = _drain(work, interrupts)
        return _conclude(work, order, interrupted)


def _runner(
    store: Any, fetch: Callable[..., Any], order: Order, interrupts: Interrupts
) -> Runner[NamedCaller]:
    return Runner(
        store,
        fetch,
        run_config(order.workers, order.hold_for, order.ttl),
        hooks=Hooks(job=lambda _outcome: interrupts.wake()),
        resolve_caller=resolve_named,
        queue=queue_of(order.fetch),
        logger=warnings_to(screen.err()),
    )


@contextmanager
def _fetcher(order: Order) -> Iterator[Callable[..., Any]]:
    if order.fetch == DEFAULT:
        with WebFetcher(order.limits) as fetcher:
            yield fetcher
    else:
        yield load_function("--fetch", order.fetch)


def _drain(work: Run, interrupts: Interrupts) -> bool:
    """Work until every job has ended; True when the user stopped it, and it was cancelled."""
    if work.progress().live and not interrupts.asked:
        work.runner.start()
    try:
        with progress.shown(screen.err()) as show:
            work.watch(interrupts, show)
        if not interrupts.asked:
            return False
        screen.err().print("Cancelling; Ctrl-C again leaves at once.")
        return work.cancel() > 0
    finally:
        work.runner.close(timeout=_PATIENCE)


def _conclude(work: Run, order: Order, interrupted: bool) -> int:
    summary = report.summarise(work)
    if order.out is not None and not interrupted:
        outfile.write_lines(order.out, (entry.shape() for entry in work.entries()))
    if order.as_json:
        screen.print_json(report.report_shape(work, summary))
    else:
        console = screen.err() if order.out == outfile.STDOUT else screen.out()
        report.print_report(console, work, summary, order.place)
    if interrupted:
        return INTERRUPTED
    return 0 if summary.status is JobStatus.DONE else FAILED


def _check_outputs(out: str | None, as_json: bool) -> None:
    if out is None:
        return
    if out == outfile.STDOUT and as_json:
        raise UsageError("--json and --out - would both write to stdout: give --out a file")
    outfile.check_out(out)
