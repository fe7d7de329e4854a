"""The floors: the least that a store of single targets can do, written by hand on one connection.

Each ``run`` fills an empty database with the shape's jobs, one job a transaction; stores every
target in the order of a rotation, ``per_commit`` targets a commit, and keeps its job's counters;
reads all back job by job; and counts again what is there. A difference ends the program.
"""

from __future__ import annotations

from benchmarks.shape import RESULT, Shape


def check(counted: object, kept: object, shape: Shape) -> None:
    """Compare the rows' count and bytes, and the jobs' counters, with what was to be stored."""
    expected = (shape.total, shape.total * len(RESULT))
    if counted != expected or kept != expected:
        raise SystemExit(f"the floor stored {counted} and counted {kept}, not {expected}")


def steps(shape: Shape, per_commit: int) -> list[list[tuple[int, int]]]:
    """The targets as (job, index) in the order of a rotation, cut into transactions."""
    order = [(job, idx) for idx in range(shape.targets) for job in range(shape.jobs)]
    return [order[start : start + per_commit] for start in range(0, len(order), per_commit)]
