"""The runner: submits jobs, hands their targets to the application's fetch, stores what comes.

It knows a store only by the ``JobStore`` protocol, and imports no SQLAlchemy.
"""

from __future__ import annotations

from batchmill.runner.config import INTERNAL_ERRORS, Caller, Hooks, RunnerConfig
from batchmill.runner.context import FetchContext
from batchmill.runner.protocol import FetchFunc, JobStore, ResolveCaller
from batchmill.runner.reading import JobReader
from batchmill.runner.reports import Job, JobReport, Submission, TargetReport
from batchmill.runner.targets import Options, Result, Target
from batchmill.runner.threads import Runner

__all__ = [
    "INTERNAL_ERRORS",
    "Caller",
    "FetchContext",
    "FetchFunc",
    "Hooks",
    "Job",
    "JobReader",
    "JobReport",
    "JobStore",
    "Options",
    "ResolveCaller",
    "Result",
    "Runner",
    "RunnerConfig",
    "Submission",
    "Target",
    "TargetReport",
]
