"""What a runner is made of, checked when it is made and not when a worker first needs it."""

from __future__ import annotations

import logging
from typing import Any

from batchmill.errors import InvalidInput
from batchmill.runner.config import Hooks, RunnerConfig
from batchmill.runner.protocol import JobStore
from batchmill.validation import check_callable


def check_arguments(
    store: Any,
    fetch: Any,
    config: Any,
    hooks: Any,
    resolve_caller: Any,
    clock: Any,
    logger: Any,
) -> None:
    """Raise ``InvalidInput``, which names it, for an argument that a runner can't use."""
    _check_store(store)
    check_callable("fetch", fetch)
    if _is_coroutine_function(fetch):
        raise InvalidInput("fetch: a Runner calls a plain function, not a coroutine function")
    _check_optional("config", config, RunnerConfig, "a RunnerConfig")
    _check_optional("hooks", hooks, Hooks, "Hooks")
    _check_optional("logger", logger, logging.Logger | logging.LoggerAdapter, "a Logger")
    if resolve_caller is not None:
        check_callable("resolve_caller", resolve_caller)
    if clock is not None:
        check_callable("clock", clock)


def _is_coroutine_function(fetch: Any) -> bool:
    """By its code, and through what wraps it."""
    import inspect  # for a class of wrappers only; importing it takes 5 ms

    return inspect.iscoroutinefunction(fetch)


def _check_store(store: Any) -> None:
    """By its methods: a wrapper around a store is one too."""
    names = [name for name in vars(JobStore) if not name.startswith("_")]
    if isinstance(store, type) or not all(callable(getattr(store, name, None)) for name in names):
        kind = type(store).__name__
        raise InvalidInput(
            f"store: must have the methods of a JobStore, {kind} has not all of them"
        )


def _check_optional(field: str, value: Any, kind: Any, named: str) -> None:
    if value is not None and not isinstance(value, kind):
        raise InvalidInput(f"{field}: must be {named} or None, not {type(value).__name__}")
