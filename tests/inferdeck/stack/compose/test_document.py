"""The compose file as data."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferdeck.stack.compose.document import fill_in, load_compose_file

TEXT = """\
services:
  # a remark
  first:
    image: one:1

    ports: ["127.0.0.1:${PORT:-80}:80"]
  second:
    image: two:2
volumes: {}
"""


@pytest.mark.parametrize(
    ("text", "variables", "expected"),
    [
        ("${A:-x}", {}, "x"),
        ("${A:-x}", {"A": ""}, "x"),
        ("${A-x}", {"A": ""}, ""),
        ("${A-x}", {}, "x"),
        ("${A}", {}, ""),
        ("${A:?is missing}", {}, "<A>"),
        ("${A:?is missing}", {"A": "set"}, "set"),
        ("a $$B ${A:-}", {}, "a $B "),
        ("127.0.0.1:${A:-80-89}:80", {"A": "8080"}, "127.0.0.1:8080:80"),
    ],
)
def test_variables_are_filled_in_as_docker_compose_does(text: str, variables: dict[str, str], expected: str) -> None:
    """Default for unset, default for empty only with a colon, a mark for what is required and missing."""
    assert expected == fill_in(text, variables)


@given(st.text(alphabet=st.characters(exclude_characters="$")))
def test_text_without_variables_stays_as_it_is(text: str) -> None:
    """Whatever it holds."""
    assert text == fill_in(text, {})


def test_a_finding_has_the_line_where_it_stands(tmp_path: Path) -> None:
    """A word is looked for inside its part alone; a part without it is named by its own line."""
    path = tmp_path / "compose.yml"
    path.write_text(TEXT)
    compose = load_compose_file(path)

    assert 3 == compose.line_of("first")
    assert 6 == compose.line_of("first", "ports:")
    assert 8 == compose.line_of("second", "image:")
    assert 7 == compose.line_of("second", "ports:")
    assert 1 == compose.line_of("third")
    assert {"PORT": {"80"}} == compose.variables_with_default()


@pytest.mark.parametrize(
    ("text", "said"),
    [("a: [", "line 1"), ("services: 3", "no services"), ("", "no services"), ("services: {a: 1}", "no services")],
)
def test_what_is_no_compose_file_is_said_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    """With the line where YAML tells it."""
    path = tmp_path / "compose.yml"
    path.write_text(text)

    with pytest.raises(ValueError, match=said):
        load_compose_file(path)
