"""Which metrics and label values a PromQL expression speaks about: a small tokenizer, no parser.

promtool judges the syntax; here it is only asked whether the names exist.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Matcher", "Selector", "grouping_labels", "selectors"]

_TOKEN = re.compile(
    r"""\s+ | \#[^\n]*
      | (?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`)
      | (?P<name>[A-Za-z_:][A-Za-z0-9_:]*)
      | (?P<number>[0-9][0-9A-Za-z_.]*)
      | (?P<sign>=~|!~|!=|==|>=|<=|[-+*/%^=<>(){}\[\],:@.])""",
    re.VERBOSE,
)
# Before a list of labels in parentheses.
_GROUPING = frozenset({"by", "without", "on", "ignoring", "group_left", "group_right"})
_WORDS = _GROUPING | {"and", "or", "unless", "bool", "offset", "inf", "nan", "start", "end", "atan2"}


@dataclass(frozen=True)
class Matcher:
    """One condition of a selector."""

    label: str
    operator: str
    value: str


@dataclass(frozen=True)
class Selector:
    """One metric in an expression, with its conditions; the metric is "" for a selector without a name."""

    metric: str
    matchers: tuple[Matcher, ...]


def selectors(expr: str) -> list[Selector]:
    """Return the selectors of an expression in the order in which they stand.

    Args:
        expr: PromQL, its placeholders already filled.

    Raises:
        ValueError: For a character that PromQL does not know, or braces that do not close.
    """
    tokens = _tokens(expr)
    found: list[Selector] = []
    at = 0
    while at < len(tokens):
        kind, text = tokens[at]
        following = tokens[at + 1][1] if at + 1 < len(tokens) else ""
        if text == "{":
            matchers, at = _matchers(tokens, at)
            found.append(Selector("", matchers))
        elif text.lower() in _GROUPING and following == "(":
            at = _closing(tokens, at + 1, ")")
        elif kind == "name" and following == "{":
            matchers, at = _matchers(tokens, at + 1)
            found.append(Selector(text, matchers))
        elif text == "[":
            at = _closing(tokens, at, "]")
        elif kind == "name" and text.lower() not in _WORDS and not _is_function(following):
            found.append(Selector(text, ()))
        at += 1
    return found


def grouping_labels(expr: str) -> list[str]:
    """Return the labels that an expression groups by or matches on, in the order in which they stand.

    Args:
        expr: PromQL, its placeholders already filled.

    Raises:
        ValueError: For a character that PromQL does not know, or a list that does not close.
    """
    tokens = _tokens(expr)
    found: list[str] = []
    for at in range(len(tokens) - 1):
        if tokens[at][1].lower() in _GROUPING and tokens[at + 1][1] == "(":
            found += [text for kind, text in tokens[at + 1 : _closing(tokens, at + 1, ")")] if kind == "name"]
    return found


def _is_function(following: str) -> bool:
    # An aggregation may be followed by its grouping: `sum by (x) (...)`.
    return following == "(" or following.lower() in {"by", "without"}


def _tokens(expr: str) -> list[tuple[str, str]]:
    tokens, at = [], 0
    while at < len(expr):
        match = _TOKEN.match(expr, at)
        if match is None:
            raise ValueError(f"{expr[at : at + 20]!r} is no PromQL")
        if match.lastgroup is not None:
            tokens.append((match.lastgroup, match[0]))
        at = match.end()
    return tokens


def _closing(tokens: list[tuple[str, str]], at: int, sign: str) -> int:
    for index in range(at, len(tokens)):
        if tokens[index][1] == sign:
            return index
    raise ValueError(f"a {tokens[at][1]!r} is not closed by {sign!r}")


def _matchers(tokens: list[tuple[str, str]], at: int) -> tuple[tuple[Matcher, ...], int]:
    end = _closing(tokens, at, "}")
    inside = [token for token in tokens[at + 1 : end] if token[1] != ","]
    if len(inside) % 3:
        raise ValueError("a selector's conditions are label, operator, quoted value, with commas between")
    triples = [inside[index : index + 3] for index in range(0, len(inside), 3)]
    # Escapes stay as they are: none of our label values holds one, and an unknown value is a finding anyway.
    return tuple(Matcher(name[1], operator[1], value[1][1:-1]) for name, operator, value in triples), end
