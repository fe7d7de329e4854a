"""The pure rules of a runner: no store, no thread, no clock in here.

What became of a fetch turns into the ``Outcome`` that a store takes, and names turn into keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from batchmill.errors import InternalError, InvalidInput, RetryLater, TargetError
from batchmill.records import Claim, Outcome, stored_bytes
from batchmill.runner.canonical import canonical_json
from batchmill.runner.config import INTERNAL_ERRORS, RunnerConfig
from batchmill.runner.targets import Result

DEFAULT_QUEUE: Final = "default"
JOB_ID_RANDOM_BYTES: Final = 10


def idempotency_key(
    caller_name: str, targets: Sequence[tuple[str, str]], *, queue: str = DEFAULT_QUEUE
) -> str:
    """The key of a submit; ``targets`` are URLs with the canonical JSON of their options.

    Hex SHA-256 of the caller's name, a NUL, and the canonical JSON of the list of
    ``{"options":…,"url":…}``; with the queue and a NUL before it when that isn't "default"
    (spec/seed-001, rule 1; design.md section 5). A name has no NUL, see ``check_name``.
    """
    import hashlib  # loads OpenSSL: not before it is needed

    prefix = "" if queue == DEFAULT_QUEUE else f"{queue}\x00"
    parts = [f'{{"options":{options},"url":{canonical_json(url)}}}' for url, options in targets]
    text = f"{prefix}{caller_name}\x00[{','.join(parts)}]"
    return hashlib.sha256(text.encode()).hexdigest()


def new_job_id(now: float, random: bytes) -> str:
    """A job id: 48 bits of milliseconds, so that ids insert in order, and 80 random bits, in hex.

    ``random`` are ten bytes from the system; a time outside the 48 bits is clamped.
    """
    milliseconds = min(max(int(now * 1000), 0), 2**48 - 1)
    return milliseconds.to_bytes(6, "big").hex() + random.hex()


@dataclass(frozen=True, slots=True)
class RetryRules:
    """How a runner treats what its fetches raise; times in seconds."""

    retry_wait: float
    retry_for: float
    max_result_bytes: int | None = None
    internal_errors: tuple[type[BaseException], ...] = INTERNAL_ERRORS

    @classmethod
    def of(cls, config: RunnerConfig) -> RetryRules:
        """Those of a configuration."""
        return cls(
            retry_wait=config.retry_wait.total_seconds(),
            retry_for=config.retry_for.total_seconds(),
            max_result_bytes=config.max_result_bytes,
            internal_errors=config.internal_errors,
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outcome for the store, and what the target hook gets once it is stored."""

    outcome: Outcome
    error: BaseException | None = None
    result_bytes: int = 0


def verdict_of_result(claim: Claim, result: object, rules: RetryRules) -> Verdict:
    """A returned ``Result`` is done; what can't be stored as one failed, with a clear text."""
    try:
        text = result_json(result)
    except InvalidInput as error:
        return failed(claim, TargetError(str(error)))
    nbytes, most = stored_bytes(text), rules.max_result_bytes
    if most is not None and nbytes > most:
        problem = f"result too large: {nbytes} bytes, at most {most} are kept"
        return failed(claim, TargetError(problem))
    return Verdict(Outcome(claim.job_id, claim.idx, claim.token, "done", text), None, nbytes)


def result_json(result: object) -> str:
    """The canonical JSON that is stored for a result; an empty ``meta`` is left out."""
    if not isinstance(result, Result):
        raise InvalidInput(f"fetch must return a Result, not {type(result).__name__}")
    if not isinstance(result.meta, Mapping):
        raise InvalidInput(f"result: meta must be a mapping, not {type(result.meta).__name__}")
    envelope = {"content": result.content}
    if result.meta:
        envelope["meta"] = dict(result.meta)
    try:
        return canonical_json(envelope)
    except InvalidInput as error:
        raise InvalidInput(f"result: {error}") from None


def verdict_of_error(
    claim: Claim, error: BaseException, rules: RetryRules, *, now: float
) -> Verdict:
    """What a raised exception means (design.md section 5, Outcomes).

    RetryLater, also in the chain of causes, beats all else; then TargetError; then the internal
    errors; any other exception failed with its text and no hint.
    """
    busy = retry_later_in(error)
    if busy is not None and not busy_too_long(claim.busy_since, rules.retry_for, now):
        wait = clamp_after(busy.after, rules.retry_wait, rules.retry_for)
        return Verdict(later(claim, now + wait))
    if isinstance(error, TargetError):
        return failed(claim, error, clean_text(error.hint))
    if busy is None and is_internal(error, rules.internal_errors):
        return failed(claim, InternalError())
    return failed(claim, error)


def failed(claim: Claim, error: BaseException, hint: str = "") -> Verdict:
    """A target that failed with the error's text; an empty hint is none."""
    text = text_of(error)
    outcome = Outcome(claim.job_id, claim.idx, claim.token, "failed", error=text, hint=hint or None)
    return Verdict(outcome, error)


def later(claim: Claim, ready_at: float) -> Outcome:
    """Pending again, not to be tried before ``ready_at``."""
    return Outcome(claim.job_id, claim.idx, claim.token, "later", ready_at=ready_at)


def put_back(claim: Claim) -> Outcome:
    """Pending again at once, as if it had not been started."""
    return Outcome(claim.job_id, claim.idx, claim.token, "put_back")


def fail_job(claim: Claim, error: str) -> Outcome:
    """The whole job ends as failed."""
    return Outcome(claim.job_id, claim.idx, claim.token, "fail_job", error=error)


def busy_too_long(busy_since: float | None, retry_for: float, now: float) -> bool:
    """True once a target has been busy for strictly longer than ``retry_for`` seconds."""
    return busy_since is not None and now - busy_since > retry_for


def clamp_after(after: object, retry_wait: float, retry_for: float) -> float:
    """The pause that a RetryLater asked for, between ``retry_wait`` and ``retry_for``.

    None, NaN and what isn't a number are ``retry_wait`` (cases.md 19).
    """
    if isinstance(after, bool) or not isinstance(after, (int, float)):
        return retry_wait
    if after >= retry_for:
        return max(retry_wait, retry_for)
    return float(after) if after > retry_wait else retry_wait  # NaN isn't more than anything


def retry_later_in(error: BaseException) -> RetryLater | None:
    """The first RetryLater in the chain of ``__cause__``, which may be a circle."""
    for link in causes(error):
        if isinstance(link, RetryLater):
            return link
    return None


def causes(error: BaseException) -> Iterator[BaseException]:
    """The exception and its causes, each once."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__


def is_internal(error: BaseException, kinds: tuple[type[BaseException], ...]) -> bool:
    """Whether an exception says that the code is wrong, so that its value is never shown."""
    return not isinstance(error, Exception) or isinstance(error, kinds)


def text_of(error: BaseException) -> str:
    """The text of an exception, fit to be stored; its class where it has none (cases.md 5)."""
    kind = type(error).__name__
    try:
        text = clean_text(str(_without_sql(error)))
    except Exception:  # noqa: BLE001 - a __str__ of the application's may raise anything
        return f"{kind} (its text can't be read)"
    return text or kind


def _without_sql(error: BaseException) -> BaseException:
    """What the driver said, where SQLAlchemy wrapped it: its text has the parameters (cases.md S9).

    Known by its attributes, since nothing here imports SQLAlchemy.
    """
    driver: object = getattr(error, "orig", None)
    if isinstance(driver, BaseException) and hasattr(error, "statement"):
        return driver
    return error


def clean_text(value: Any) -> str:
    """A text that every database holds: NUL and lone surrogates become U+FFFD (cases.md 22)."""
    text = "" if value is None else str(value)
    if "\x00" in text:
        text = text.replace("\x00", "\ufffd")
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
