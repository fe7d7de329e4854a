from __future__ import annotations

import pytest

from batchmill.cli.errors import UsageError
from batchmill.cli.inputs import parse_lines, read_targets


def _parsed(text: str | bytes) -> list[tuple[str, dict]]:
    data = text.encode() if isinstance(text, str) else text
    return [(t.url, dict(t.options)) for t in parse_lines(data.splitlines(keepends=True))]


def test_each_line_is_a_url_and_order_is_kept():
    """A URL a line, with or without a line end, in order, repeats included."""
    assert _parsed("http://a\r\nhttp://b\nhttp://a") == [
        ("http://a", {}),
        ("http://b", {}),
        ("http://a", {}),
    ]


def test_blank_lines_and_comments_are_left_out():
    """Blank lines, and lines that begin with #, are no targets."""
    assert _parsed("\n# first\n  \nhttp://a#part\n") == [("http://a#part", {})]


def test_a_json_line_carries_options():
    """A line of JSON has a url and, if wanted, options; both kinds mix."""
    text = '{"url": "http://a", "options": {"mode": "text"}}\nhttp://b\n{"url": "http://c"}\n'
    assert _parsed(text) == [("http://a", {"mode": "text"}), ("http://b", {}), ("http://c", {})]


def test_a_byte_order_mark_is_no_part_of_the_url():
    """A file that begins with a byte order mark reads the same."""
    assert _parsed(b"\xef\xbb\xbfhttp://a\n") == [("http://a", {})]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "is not JSON"),
        ('{"url": 5}', "url"),
        ('{"url": ""}', "url"),
        ('{"options": {}}', "url"),
        ('{"url": "a", "options": []}', "options"),
        ('{"url": "a", "link": "b"}', "'link' is not known"),
        ('{"url": "a", "options": {"x": NaN}}', "NaN is not JSON"),
        ('{"url": "a", "options": {"x": 1e999}}', "options"),
        ('{"url": "a", "options": {"x": "\\ud83d"}}', "lone surrogate"),
        ('{"url": "a\\u0000b"}', "NUL"),
        ("a\x00b", "NUL"),
        (b"caf\xe9", "not UTF-8"),
        ('{"a":' * 100_000, "JSON"),
    ],
)
def test_a_wrong_line_is_named_by_its_number(line, said):
    """What can't be read, or couldn't be stored, is said with the number of its line."""
    raw = line.encode() if isinstance(line, str) else line
    with pytest.raises(UsageError, match=r"^line 3: ") as caught:
        _parsed(b"http://a\n\n" + raw + b"\n")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_empty_list_is_a_usage_error(tmp_path):
    """A file without targets is refused by its name."""
    (tmp_path / "urls").write_text("# nothing\n")
    with pytest.raises(UsageError, match="no targets in urls"):
        read_targets("urls")


@pytest.mark.parametrize(("name", "said"), [("nowhere", "no such file"), (".", "is a directory")])
def test_a_list_that_cannot_be_read_is_a_usage_error(name, said):
    """A missing file, or a folder, is one line that names it."""
    with pytest.raises(UsageError, match=said):
        read_targets(name)


def test_a_long_list_is_read_whole(tmp_path):
    """A list of any length is read."""
    (tmp_path / "urls").write_text("".join(f"http://h/{n}\n" for n in range(50_000)))
    targets = read_targets("urls")
    assert len(targets) == 50_000
    assert targets[-1].url == "http://h/49999"
