"""Write and read YAML text: one writer for every generated file, one strict reader that knows its lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

__all__ = ["YamlError", "dump", "parse"]

_WIDTH = 118
# The same reader in C, five times as fast, where PyYAML was built with it.
_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlError(ValueError):
    """Text that is no YAML or says a key twice; the message holds the line."""


class _Writer(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  # PyYAML's signature
        return True  # anchors are hard to read in a reviewed file

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002  # PyYAML's signature
        super().increase_indent(flow, indentless=False)


def _text(writer: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return writer.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Writer.add_representer(str, _text)


def dump(document: Mapping[str, Any], head: str) -> str:
    """Return *document* as YAML, keys in their given order, under a comment line.

    Args:
        document: Plain dicts, lists, strings, numbers and booleans.
        head: The first line, without the comment sign.
    """
    body = yaml.dump(dict(document), Dumper=_Writer, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return f"# {head}\n{body}"


def parse(text: str) -> tuple[Any, dict[tuple[str | int, ...], int]]:
    """Return the document and the line, from 1, on which each of its places starts.

    Args:
        text: One YAML document.

    Raises:
        YamlError: When it is no YAML, or a key stands twice in one mapping (YAML itself would silently keep the last).
    """
    try:
        loader = _LOADER(text)
        node = loader.get_single_node()
        if node is None:
            return None, {}
        lines = dict(_places(node, ()))
        return loader.construct_document(node), lines
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise YamlError(f"line {line}: {error.problem}") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise YamlError(f"line {line}: a character that YAML does not allow ({error.reason})") from error


def _places(node: yaml.Node, at: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], int]]:
    yield at, node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _places(item, (*at, index))
    elif isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise YamlError(f"line {key.start_mark.line + 1}: a key must be a plain text")
            if key.value in seen:
                raise YamlError(f"line {key.start_mark.line + 1}: the key {key.value!r} stands twice")
            seen.add(key.value)
            # The key's line: a block text starts a line later than the key that a reader looks for.
            yield (*at, key.value), key.start_mark.line + 1
            yield from ((place, line) for place, line in _places(value, (*at, key.value)) if place != (*at, key.value))
