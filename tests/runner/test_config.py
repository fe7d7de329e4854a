"""RunnerConfig: its defaults and what it refuses."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest

from batchmill.errors import InvalidInput
from batchmill.runner import Runner, RunnerConfig


def test_the_defaults_are_those_of_the_seed():
    """spec/seed-001, Interfaces (Config), and what design.md section 5 adds."""
    config = RunnerConfig()
    assert config.ttl == timedelta(hours=24)
    assert (config.targets_per_job, config.jobs_per_caller, config.jobs_total) == (32, 1, 8)
    assert (config.workers, config.worker_limit, config.max_bytes) == (1, 2, 64 * 2**20)
    assert (config.retry_wait, config.retry_for) == (timedelta(seconds=2), timedelta(minutes=10))
    assert config.max_result_bytes is None
    assert (config.hold_for, config.poll_interval) == (timedelta(minutes=1), timedelta(seconds=1))
    assert config.max_attempts == 3


def test_workers_above_the_limit_are_clamped_with_a_warning():
    """More workers than worker_limit are clamped, and the warning names it."""
    with pytest.warns(UserWarning, match="worker_limit") as caught:
        config = RunnerConfig(workers=5)
    assert config.workers == 2
    assert caught[0].filename == __file__
    assert RunnerConfig(workers=5, worker_limit=8).workers == 5


DURATIONS = ["ttl", "retry_wait", "retry_for", "hold_for", "poll_interval"]
COUNTS = [
    "targets_per_job",
    "jobs_per_caller",
    "jobs_total",
    "workers",
    "worker_limit",
    "max_bytes",
    "max_result_bytes",
    "max_attempts",
]


@pytest.mark.parametrize("field", DURATIONS)
@pytest.mark.parametrize("value", [timedelta(0), timedelta(seconds=-1), 5, math.nan, None, "1 h"])
def test_a_duration_is_a_positive_timedelta(field, value):
    """Zero, negative or nonsense is InvalidInput that names the field."""
    with pytest.raises(InvalidInput, match=field):
        RunnerConfig(**{field: value})


@pytest.mark.parametrize("field", COUNTS)
@pytest.mark.parametrize("value", [0, -1, 1.5, math.nan, True, "3", 2**64])
def test_a_count_is_a_positive_whole_number(field, value):
    """Zero, negative or nonsense is InvalidInput that names the field."""
    with pytest.raises(InvalidInput, match=field):
        RunnerConfig(**{field: value})


@pytest.mark.parametrize("value", [[KeyError], (3,), KeyError, ("KeyError",)])
def test_internal_errors_are_a_tuple_of_exception_classes(value):
    """Anything else is InvalidInput that names the field."""
    with pytest.raises(InvalidInput, match="internal_errors"):
        RunnerConfig(internal_errors=value)


def test_a_runner_refuses_what_it_can_not_run(store):
    """A coroutine function, or a queue that can't be stored, is refused by name."""

    async def fetch(context, caller, target):
        raise NotImplementedError

    with pytest.raises(InvalidInput, match="fetch"):
        Runner(store, fetch)
    with pytest.raises(InvalidInput, match="queue"):
        Runner(store, print, queue="a\x00b")


def test_an_identity_is_a_label_and_a_random_suffix_that_fits(store):
    """Two runners of one label are two, and a long label is cut to what a store holds."""
    one, two = (Runner(store, print, runner_id="x" * 80) for _ in range(2))
    assert one.runner_id != two.runner_id
    assert len(one.runner_id) == 64
    assert one.runner_id.startswith("xxxx")
