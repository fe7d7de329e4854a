"""One target: find its caller, call the application's fetch, judge what became of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

from batchmill.errors import InternalError, RetryLater, TargetError
from batchmill.records import Claim, Outcome
from batchmill.runner import rules
from batchmill.runner.callers import CallerSource
from batchmill.runner.config import Caller
from batchmill.runner.dispatch import Flight
from batchmill.runner.logs import Log
from batchmill.runner.observer import Observer, frames
from batchmill.runner.protocol import FetchFunc
from batchmill.runner.rules import RetryRules, Verdict
from batchmill.runner.targets import Target, read_options

C = TypeVar("C", bound=Caller)


class Fetcher(Generic[C]):
    """Turns a claim into an outcome; never raises, whatever the application's code does."""

    def __init__(
        self,
        fetch: FetchFunc[C],
        callers: CallerSource[C],
        retry_rules: RetryRules,
        *,
        now: Callable[[], float],
        observer: Observer,
        logger: Log,
    ) -> None:
        self._fetch = fetch
        self._callers = callers
        self._rules = retry_rules
        self._now = now
        self._observer = observer
        self._logger = logger

    def __call__(self, flight: Flight) -> Outcome:
        """Fetch the target; what the hooks will want to know is left in the flight."""
        if self._observer.counts_inflight:
            self._observer.inflight(+1)
            self._observer.drain()
        started = time.perf_counter()
        verdict = self._verdict(flight)
        flight.seconds = time.perf_counter() - started
        flight.error, flight.result_bytes = verdict.error, verdict.result_bytes
        if self._observer.counts_inflight:
            self._observer.inflight(-1)
            self._observer.drain()
        return verdict.outcome

    def _verdict(self, flight: Flight) -> Verdict:
        claim = flight.claim
        if flight.context.cancelled:  # since it was claimed: don't even begin
            return Verdict(rules.put_back(claim))
        try:
            return self._fetched(flight)
        except BaseException as error:  # noqa: BLE001 - the worker outlives the application's code
            verdict = self._raised(claim, error)
        if verdict.outcome.kind == "later" and flight.context.cancelled:
            # It gave up because it was told to, not since its target was busy.
            return Verdict(rules.put_back(claim))
        return verdict

    def _fetched(self, flight: Flight) -> Verdict:
        claim = flight.claim
        try:
            caller = self._callers.find(claim)
        except BaseException as error:  # noqa: BLE001 - as above: SystemExit too is only an error
            return self._unresolved(claim, error)
        if caller is None:
            self._logger.warning("job %s failed: %s", claim.job_id, self._callers.unknown)
            return Verdict(rules.fail_job(claim, self._callers.unknown))
        options = read_options(claim.options)
        if options is None:
            return rules.failed(claim, TargetError("options are not a JSON object"))
        result = self._fetch(flight.context, caller, Target(claim.url, options))
        return rules.verdict_of_result(claim, result, self._rules)

    def _raised(self, claim: Claim, error: BaseException) -> Verdict:
        try:
            verdict = rules.verdict_of_error(claim, error, self._rules, now=self._now())
        except BaseException as odd:  # noqa: BLE001 - an exception that can't even be read
            error, verdict = odd, rules.failed(claim, InternalError())
        if isinstance(verdict.error, InternalError):
            self._logger.error(
                "internal error, job %s target %s: %s", claim.job_id, claim.idx, frames(error)
            )
        return verdict

    def _unresolved(self, claim: Claim, error: BaseException) -> Verdict:
        """design.md section 5: resolve_caller raising is a retry-later."""
        self._logger.warning("job %s: resolve_caller raised: %s", claim.job_id, frames(error))
        after = error.after if isinstance(error, RetryLater) else None
        busy = RetryLater("the caller can't be resolved", after=after)
        return rules.verdict_of_error(claim, busy, self._rules, now=self._now())
