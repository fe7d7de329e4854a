"""The three nearest peers beside the floor: submit, drain, read back, submit → stored."""

from __future__ import annotations

from typing import Any

from benchmarks.child import Child, ChildFailed, call
from benchmarks.context import Context
from benchmarks.databases import Missing
from benchmarks.parts.drains import floor
from benchmarks.peers import PEERS, Peer
from benchmarks.peers.environments import NotInstalled, python_of, version_of
from benchmarks.shape import Figures


def measure(context: Context) -> None:
    """Every peer in every round; one that can't be measured says so, and the others go on."""
    for peer in PEERS:
        try:
            python = python_of(peer.requirement)
            name = f"{peer.name} {version_of(python, peer.requirement)}"
            for number in range(context.rounds):
                context.say(f"{peer.name}, round {number + 1} of {context.rounds}")
                _round(context, peer, python, name)
        except (NotInstalled, Missing, ChildFailed) as error:
            context.report.missing[peer.name] = str(error)


def _round(context: Context, peer: Peer, python: str, name: str) -> None:
    base = floor(context, peer.floor)
    own: Figures = {}
    shape = context.sizes.shape.arguments()
    with context.databases.fresh(peer.floor) as url:
        for step in ("submit", "drain", *(["read"] if peer.reads else [])):
            own[step] = call(_spec(peer, step), python=python, url=url, **shape, **peer.options)
        latency = _latency(peer, python, url, context.sizes.singles)
    context.report.add(name, peer.floor, own, base, settings=peer.settings)
    context.report.value(f"idle {name}", latency)


def _latency(peer: Peer, python: str, url: str, times: int) -> float:
    given: dict[str, Any] = {"url": url, "times": times, **peer.options}
    with Child(_spec(peer, "worker"), python=python, **given) as worker:
        worker.wait_ready()
        worker.go()
        call(_spec(peer, "sender"), python=python, **given)
        median: float = worker.result()
    return median


def _spec(peer: Peer, step: str) -> str:
    return f"benchmarks.peers.{peer.module}:{step}"
