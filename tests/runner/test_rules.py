"""The pure rules, by property."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections import OrderedDict
from datetime import UTC, datetime
from itertools import pairwise
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchmill.errors import InternalError, InvalidInput, RetryLater, TargetError
from batchmill.records import Claim
from batchmill.runner import Options, Result, Target, rules
from batchmill.runner.canonical import canonical_json
from batchmill.runner.rules import RetryRules
from batchmill.runner.targets import read_result

CLAIM = Claim("job", 0, "token", 1, None, "anna", "restricted", "u", "{}")
RULES = RetryRules(retry_wait=2.0, retry_for=600.0)

texts = st.text(st.characters(exclude_categories=["Cs"]))
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=6,
)
options = st.dictionaries(texts, json_values, max_size=3)


@given(json_values)
def test_canonical_json_reads_back_the_same(value):
    """What was made canonical is strict JSON of the same value."""
    assert json.loads(canonical_json(value)) == value


def test_canonical_json_compares_nothing_of_the_applications():
    """A value that can't even be compared is refused like any other that is no JSON."""

    class Array:
        def __eq__(self, other):
            raise ValueError("the truth value of an array is ambiguous")

        __hash__ = None

    with pytest.raises(InvalidInput, match="not JSON"):
        canonical_json(Array())


@given(options)
def test_canonical_json_does_not_depend_on_the_order_of_keys(value):
    """Equal mappings have one text, whatever order they were filled in."""
    backwards = OrderedDict(reversed(value.items()))
    assert canonical_json(backwards) == canonical_json(value)
    assert canonical_json(MappingProxyType(value)) == canonical_json(value)


def test_canonical_json_is_compact_sorted_utf8():
    """The exact form: sorted keys, no blanks, letters as they are, a NUL escaped."""
    assert canonical_json({"b": [1, "é"], "a": "x\x00"}) == '{"a":"x\\u0000","b":[1,"é"]}'


def circular():
    inner: list[object] = []
    inner.append(inner)
    return inner


def deep():
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    return value


class Hostile(dict):
    """A mapping whose reading raises."""

    def items(self):
        raise OSError("secret")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({1, 2}, "set"),
        (b"\xff", "bytes"),
        (datetime.now(UTC), "datetime"),
        (10**5000, "too many digits"),
        (math.nan, "NaN"),
        ({"a": [math.inf]}, "NaN or an infinity"),
        (circular(), "circular"),
        (deep(), "too deep"),
        ("\ud83d", "lone surrogate"),
        ({"a": {1: 2}}, "key is of type int"),
        ({1: 2, "b": 3}, "keys are text"),
        ({(1, 2): 3}, "keys are text"),
        (Hostile(a=1), "raised OSError"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isascii() else "value",
)
def test_what_is_not_json_is_refused_in_clear_words(value, why):
    """The error says what is wrong and quotes nothing (cases.md 5 and 21)."""
    with pytest.raises(InvalidInput, match=why) as caught:
        canonical_json(value)
    assert "secret" not in str(caught.value)


@given(texts, st.lists(st.tuples(texts, options), min_size=1, max_size=3))
def test_the_key_is_the_sha256_of_name_and_canonical_targets(name, targets):
    """spec/seed-001, rule 1: sha256 of name, NUL and the JSON of the targets (design.md 5)."""
    whole = canonical_json([{"url": url, "options": options} for url, options in targets])
    expected = hashlib.sha256(f"{name}\x00{whole}".encode()).hexdigest()
    given_as = [(url, canonical_json(options)) for url, options in targets]
    assert rules.idempotency_key(name, given_as) == expected


def test_the_queue_is_part_of_the_key_unless_it_is_the_default():
    """With the queue and a NUL before it when that isn't "default" (design.md section 5)."""
    key = rules.idempotency_key("anna", [("u", "{}")], queue="other")
    text = 'other\x00anna\x00[{"options":{},"url":"u"}]'
    assert key == hashlib.sha256(text.encode()).hexdigest()


@given(st.floats(0, 2**40), st.floats(0, 2**40), st.binary(min_size=10, max_size=10))
def test_job_ids_are_16_bytes_in_hex_and_in_order_of_time(one, two, random):
    """48 bits of milliseconds come first, so that ids of later jobs are greater."""
    early, late = sorted([one, two])
    first, second = rules.new_job_id(early, random), rules.new_job_id(late, random)
    assert len(bytes.fromhex(first)) == 16
    assert first <= second
    assert first.endswith(random.hex())


@pytest.mark.parametrize(
    ("now", "begins"),
    [(0, 12 * "0"), (1.5, "0000000005dc"), (1e9, "00e8d4a51000"), (-1, 12 * "0"), (1e30, 12 * "f")],
)
def test_a_job_id_begins_with_its_milliseconds(now, begins):
    """They are unix milliseconds, and a time outside the 48 bits is clamped."""
    assert rules.new_job_id(now, b"0123456789").startswith(begins)


@given(st.one_of(st.floats(), st.integers(), st.none(), st.text(), st.booleans()))
def test_after_is_always_clamped(after):
    """Whatever RetryLater asks for, the pause is between retry_wait and retry_for (case 19)."""
    assert 2.0 <= rules.clamp_after(after, 2.0, 600.0) <= 600.0


@pytest.mark.parametrize(
    ("after", "pause"),
    [(-5, 2), (math.nan, 2), (math.inf, 600), (1e18, 600), (None, 2), (30, 30), (10**400, 600)],
)
def test_the_pause_of_each_odd_after(after, pause):
    """The values of cases.md 19, each with its right pause."""
    verdict = rules.verdict_of_error(CLAIM, RetryLater(after=after), RULES, now=1000.0)
    assert (verdict.outcome.kind, verdict.outcome.ready_at) == ("later", 1000.0 + pause)


@pytest.mark.parametrize(("busy_for", "kind"), [(None, "later"), (600, "later"), (600.5, "failed")])
def test_a_target_may_be_busy_for_exactly_retry_for(busy_for, kind):
    """Failed once it has been busy for strictly longer than retry_for (spec/seed-001, rule 3)."""
    since = None if busy_for is None else 1000.0 - busy_for
    claim = Claim("job", 0, "token", 1, since, "anna", "restricted", "u", "{}")
    outcome = rules.verdict_of_error(claim, RetryLater("still busy"), RULES, now=1000.0).outcome
    assert outcome.kind == kind
    assert outcome.error == ("still busy" if kind == "failed" else None)


def chained(*errors: BaseException) -> BaseException:
    """The first of the errors, each caused by the next."""
    for outer, inner in pairwise(errors):
        outer.__cause__ = inner
    return errors[0]


@pytest.mark.parametrize(
    "error",
    [
        RetryLater(),
        chained(OSError(), ValueError(), RetryLater()),
        chained(KeyError(), RetryLater()),
        chained(SystemExit(), RetryLater()),
        chained(TargetError("no"), RetryLater()),
    ],
    ids=lambda error: type(error).__name__,
)
def test_retry_later_counts_at_any_depth_and_beats_all(error):
    """An exception with a RetryLater in its chain of causes is one (spec/seed-001, rule 3)."""
    assert rules.verdict_of_error(CLAIM, error, RULES, now=0.0).outcome.kind == "later"


def test_a_retry_that_took_too_long_fails_with_the_outer_text():
    """The text of the failure is the one that was raised, not its cause's."""
    claim = Claim("job", 0, "token", 1, 0.0, "anna", "restricted", "u", "{}")
    error = chained(OSError("outer"), RetryLater("inner"))
    assert rules.verdict_of_error(claim, error, RULES, now=601.0).outcome.error == "outer"


def test_a_circle_of_causes_ends():
    """Exceptions that cause each other are looked at once."""
    one, two = OSError("one"), OSError("two")
    one.__cause__, two.__cause__ = two, one
    assert rules.verdict_of_error(CLAIM, one, RULES, now=0.0).outcome.error == "one"


@pytest.mark.parametrize(
    "error",
    [
        TypeError("secret"),
        KeyError("secret"),
        ZeroDivisionError("secret"),
        StopIteration("secret"),
        SystemExit("secret"),
        KeyboardInterrupt("secret"),
        GeneratorExit("secret"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_go_calls_a_panic_is_an_internal_error(error):
    """Its value is never echoed, and the hook gets an InternalError (spec/seed-001, rule 3)."""
    verdict = rules.verdict_of_error(CLAIM, error, RULES, now=0.0)
    assert (verdict.outcome.kind, verdict.outcome.error) == ("failed", "internal error")
    assert isinstance(verdict.error, InternalError)


def test_target_error_gives_text_and_hint_any_other_only_text():
    """spec/seed-001, rule 3: Msg and Hint, or the error's text and no hint."""
    told = rules.verdict_of_error(CLAIM, TargetError("gone", "try the archive"), RULES, now=0.0)
    assert (told.outcome.error, told.outcome.hint) == ("gone", "try the archive")
    other = rules.verdict_of_error(CLAIM, OSError("disk"), RULES, now=0.0)
    assert (other.outcome.error, other.outcome.hint) == ("disk", None)


class Unspeakable(Exception):
    """An exception whose text can't be had (cases.md 5)."""

    def __str__(self):
        raise RuntimeError("in the error path")


def test_an_exception_without_a_readable_text_is_named():
    """A __str__ that raises, or an empty text, leaves the name of the class (cases.md 5)."""
    assert rules.text_of(Unspeakable()) == "Unspeakable (its text can't be read)"
    assert rules.text_of(ValueError()) == "ValueError"


class Wrapped(Exception):
    """As SQLAlchemy's: the text tells the statement, ``orig`` is what the driver said."""

    def __init__(self, orig, **more):
        super().__init__("SELECT secret")
        self.orig = orig
        for name, value in more.items():
            setattr(self, name, value)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Wrapped(OSError("locked"), statement="SELECT secret"), "locked"),
        (Wrapped(OSError("locked")), "SELECT secret"),
        (Wrapped("locked", statement="SELECT secret"), "SELECT secret"),
    ],
)
def test_what_a_driver_said_is_told_without_the_statement(error, text):
    """An error with a statement and a driver's error in it has the driver's text (cases.md S9)."""
    assert rules.text_of(error) == text


@pytest.mark.parametrize(("value", "text"), [(None, ""), (5, "5"), ("", ""), ("a", "a")])
def test_a_hint_may_be_anything(value, text):
    """None is no text, and what isn't text is stored as its text."""
    assert rules.clean_text(value) == text


@given(st.text(st.characters() | st.sampled_from("\x00\ud83d\udfff")))
def test_every_error_text_is_storable(text):
    """NUL and lone surrogates are replaced, so that every database takes it (cases.md 22)."""
    clean = rules.clean_text(text)
    assert "\x00" not in clean
    clean.encode()
    if "\x00" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text):
        assert clean == text


@given(json_values, options)
def test_a_result_reads_back_as_it_was(content, meta):
    """A stored result is the canonical JSON of content and meta, an empty meta left out."""
    verdict = rules.verdict_of_result(CLAIM, Result(content, meta), RULES)
    assert verdict.outcome.kind == "done"
    assert verdict.result_bytes == len(verdict.outcome.result.encode())
    assert read_result(verdict.outcome.result) == Result(content, meta)


@pytest.mark.parametrize(
    "text", ["[1]", '{"content":1,"more":2}', '{"meta":{}}', '{"content":1,"meta":3}']
)
def test_a_stored_result_of_another_shape_is_its_content(text):
    """design.md section 5: it reads as Result(content=it)."""
    assert read_result(text) == Result(json.loads(text))


def test_a_result_that_is_too_large_fails_and_says_so():
    """max_result_bytes counts the UTF-8 bytes of the stored JSON."""
    tight = RetryRules(retry_wait=2.0, retry_for=600.0, max_result_bytes=16)
    assert rules.verdict_of_result(CLAIM, Result("é"), tight).outcome.kind == "done"
    outcome = rules.verdict_of_result(CLAIM, Result("éé"), tight).outcome
    assert outcome.error == "result too large: 18 bytes, at most 16 are kept"


@pytest.mark.parametrize("returned", [None, "text", {"content": 1}])
def test_a_fetch_must_return_a_result(returned):
    """Anything else is a failed target that says what to return."""
    outcome = rules.verdict_of_result(CLAIM, returned, RULES).outcome
    assert outcome.kind == "failed"
    assert outcome.error == f"fetch must return a Result, not {type(returned).__name__}"


def test_the_meta_of_a_result_is_a_mapping():
    """Anything else is a failed target that says so, and names what was there."""
    outcome = rules.verdict_of_result(CLAIM, Result("x", meta=3), RULES).outcome
    assert (outcome.kind, outcome.result) == ("failed", None)
    assert outcome.error == "result: meta must be a mapping, not int"


def test_an_outcome_names_the_attempt_that_it_is_of():
    """Every kind of outcome has the job, the index and the token of its claim."""
    claim = Claim("job", 7, "seventh", 1, None, "anna", "restricted", "u", "{}")
    raised = (OSError(), RetryLater())
    verdicts = [rules.verdict_of_result(claim, Result(1), RULES)]
    verdicts += [rules.verdict_of_error(claim, error, RULES, now=0.0) for error in raised]
    outcomes = [each.outcome for each in verdicts]
    outcomes += [rules.put_back(claim), rules.fail_job(claim, "why")]
    assert [each.kind for each in outcomes] == ["done", "failed", "later", "put_back", "fail_job"]
    assert {(each.job_id, each.idx, each.token) for each in outcomes} == {("job", 7, "seventh")}


def test_options_leave_out_what_is_not_set():
    """The seed's omitempty: only fields that are set are in the JSON, context also when False."""
    assert Options().as_mapping() == {}
    options = Options(mode="x", context=False, recover=True)
    assert options.as_mapping() == {"mode": "x", "context": False, "recover": True}


def test_options_of_an_applications_own():
    """A subclass with one more field hands it out, with slots or without."""
    for slots in (True, False):
        mine = dataclasses.make_dataclass(
            "Mine", [("lang", str, "")], bases=(Options,), frozen=True, slots=slots
        )
        assert mine(mode="m", lang="en").as_mapping() == {"mode": "m", "lang": "en"}
        assert mine().as_mapping() == {}


def test_a_target_has_a_plain_mapping_of_options():
    """Target.options is a dict, whatever mapping was given, or Options."""
    assert Target("u").options == {}
    assert Target("u", Options(jq=".a")).options == {"jq": ".a"}
    given_as = {"a": 1}
    target = Target("u", MappingProxyType(given_as))
    given_as["a"] = 2
    assert target == Target("u", {"a": 1})


@pytest.mark.parametrize("url", [None, 3, b"u", "a\x00b", "\ud83d"])
def test_a_url_is_text_that_every_database_holds(url):
    """Anything else is a clear InvalidInput (cases.md 22)."""
    with pytest.raises(InvalidInput, match="url"):
        Target(url)
