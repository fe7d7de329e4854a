"""batchmill: a durable store for batch jobs in SQL, and a runner that drains them.

Every public name can be imported from here. A name's module is imported when the name is first
asked for, so that ``import batchmill`` costs next to nothing and pulls in no SQLAlchemy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from batchmill.errors import (
        BatchmillError,
        Busy,
        CallerBusy,
        InternalError,
        InvalidInput,
        InvalidTransition,
        JobExists,
        JobNotFound,
        MigrationError,
        NoTargets,
        NotMigrated,
        RetryLater,
        RunnerClosed,
        SchemaAhead,
        SchemaBehind,
        StoreBusy,
        StoreError,
        StoreFull,
        StoreUnavailable,
        SubmitRejected,
        TargetError,
        TargetExists,
        TargetNotFound,
        TooManyTargets,
    )
    from batchmill.records import (
        Admission,
        BatchJob,
        BatchTarget,
        CallerClass,
        Claim,
        Exchange,
        Held,
        JobStatus,
        Limits,
        Outcome,
        Released,
        Settled,
        StoreStats,
        TargetStatus,
    )
    from batchmill.runner import (
        INTERNAL_ERRORS,
        Caller,
        FetchContext,
        FetchFunc,
        Hooks,
        Job,
        JobReader,
        JobReport,
        JobStore,
        Options,
        ResolveCaller,
        Result,
        Runner,
        RunnerConfig,
        Submission,
        Target,
        TargetReport,
    )
    from batchmill.store import (
        BatchJobRow,
        BatchRepository,
        BatchRunnerRow,
        BatchTargetRow,
        BatchTotalRow,
        BatchTurnRow,
        create_store_engine,
        metadata,
        migrate,
    )

__all__ = [
    "INTERNAL_ERRORS",
    "Admission",
    "BatchJob",
    "BatchJobRow",
    "BatchRepository",
    "BatchRunnerRow",
    "BatchTarget",
    "BatchTargetRow",
    "BatchTotalRow",
    "BatchTurnRow",
    "BatchmillError",
    "Busy",
    "Caller",
    "CallerBusy",
    "CallerClass",
    "Claim",
    "Exchange",
    "FetchContext",
    "FetchFunc",
    "Held",
    "Hooks",
    "InternalError",
    "InvalidInput",
    "InvalidTransition",
    "Job",
    "JobExists",
    "JobNotFound",
    "JobReader",
    "JobReport",
    "JobStatus",
    "JobStore",
    "Limits",
    "MigrationError",
    "NoTargets",
    "NotMigrated",
    "Options",
    "Outcome",
    "Released",
    "ResolveCaller",
    "Result",
    "RetryLater",
    "Runner",
    "RunnerClosed",
    "RunnerConfig",
    "SchemaAhead",
    "SchemaBehind",
    "Settled",
    "StoreBusy",
    "StoreError",
    "StoreFull",
    "StoreStats",
    "StoreUnavailable",
    "Submission",
    "SubmitRejected",
    "Target",
    "TargetError",
    "TargetExists",
    "TargetNotFound",
    "TargetReport",
    "TargetStatus",
    "TooManyTargets",
    "__version__",
    "create_store_engine",
    "metadata",
    "migrate",
]

_RECORDS = """
    Admission BatchJob BatchTarget CallerClass Claim Exchange Held JobStatus Limits Outcome
    Released Settled StoreStats TargetStatus
"""
_RUNNER = """
    INTERNAL_ERRORS Caller FetchContext FetchFunc Hooks Job JobReader JobReport JobStore Options
    ResolveCaller Result Runner RunnerConfig Submission Target TargetReport
"""
_STORE = """
    BatchJobRow BatchRepository BatchRunnerRow BatchTargetRow BatchTotalRow BatchTurnRow
    create_store_engine metadata migrate
"""

_HOMES = {
    **dict.fromkeys(_RECORDS.split(), "batchmill.records"),
    **dict.fromkeys(_RUNNER.split(), "batchmill.runner"),
    **dict.fromkeys(_STORE.split(), "batchmill.store"),
}
"""Where a public name lives; one that isn't listed is an error's, of ``batchmill.errors``."""

__version__: str


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = _version()
    elif name in __all__:
        value = _resolve(name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _resolve(name: str) -> Any:
    from importlib import import_module

    return getattr(import_module(_HOMES.get(name, "batchmill.errors")), name)


def _version() -> str:
    from importlib.metadata import version

    return version("batchmill")
