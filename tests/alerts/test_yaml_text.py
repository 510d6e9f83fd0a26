"""Tests of alerts/yaml_text.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerts.yaml_text import YamlError, dump, parse

# What YAML can carry: printable text; a lone surrogate or a control character has no place in a rule file.
TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc", "Cn", "Co"), include_characters="\n"), max_size=200)
VALUES = st.recursive(
    TEXTS | st.integers() | st.booleans(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text("abc", min_size=1), VALUES, min_size=1, max_size=5))
def test_what_is_written_is_read_again(document: dict[str, object]) -> None:
    """Any text, whatever its quotes, colons and line breaks, comes back as it was."""
    text = dump(document, "a head")

    assert "# a head" == text.splitlines()[0]
    assert document == parse(text)[0]


def test_places_have_their_lines() -> None:
    """Each key and each item knows the line on which it starts."""
    _, lines = parse("a: 1\nb:\n  - x\n  - c: >-\n      long\n      text\n    d: 2\n")

    assert 1 == lines[("a",)]
    assert 2 == lines[("b",)]
    assert 3 == lines[("b", 0)]
    assert 4 == lines[("b", 1, "c")]
    assert 7 == lines[("b", 1, "d")]


def test_a_key_that_stands_twice_is_an_error() -> None:
    """YAML would keep the last of two equal keys without a word; here it is an error with its line."""
    with pytest.raises(YamlError, match=r"line 3: the key 'a' stands twice"):
        parse("a: 1\nb: 2\na: 3\n")


@pytest.mark.parametrize("text", ["a: 1\nb: ]\n", "a: 1\nb: \x07\n", "a: 1\n[1, 2]: 3\n", "a: 1\nb: *x\n"])
def test_no_yaml_is_an_error_with_its_line(text: str) -> None:
    """A syntax error, a character that may not stand there, and a key that is no text each name their line."""
    with pytest.raises(YamlError, match=r"^line 2: "):
        parse(text)


def test_an_empty_text_is_nothing() -> None:
    """An empty file holds no document and no places."""
    assert (None, {}) == parse("# only a comment\n")
