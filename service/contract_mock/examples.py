"""The contract's operations, with an example of every answer: pure, from openapi.yaml as data."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["Answer", "Operation", "operations"]

_METHODS: Final = ("get", "put", "post", "delete", "patch", "head", "options")
_NAME: Final = re.compile(r"\{[^}]+\}")


@dataclass(frozen=True)
class Answer:
    """One answer that the contract knows.

    Attributes:
        status: HTTP status.
        headers: Those that are required, with a value that fits.
        media_type: Content type; "" for an answer without a body.
        body: An example by its name; "" names the only one. Empty where the contract has none.
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = ""
    body: Mapping[str, Any] = field(default_factory=dict)

    def text(self, name: str = "") -> str:
        """Return the example of that name as JSON, else the first; "" where there is none."""
        if not self.body:
            return ""
        return json.dumps(self.body.get(name, next(iter(self.body.values()))), ensure_ascii=False)


@dataclass(frozen=True)
class Operation:
    """One method of one path.

    Attributes:
        path: As in the contract, `{name}` for what varies.
        method: In capitals.
        schema: JSON Schema of the body, references resolved; None without a body.
        answers: By status.
    """

    path: str
    method: str
    schema: Mapping[str, Any] | None
    answers: Mapping[int, Answer]

    @property
    def pattern(self) -> str:
        """A regular expression that the whole path must match; what varies is one segment."""
        parts = _NAME.split(self.path)
        return "^" + "[^/]+".join(re.escape(part) for part in parts) + "$"


def operations(document: Mapping[str, Any]) -> list[Operation]:
    """Return every operation of the contract, in its order.

    Args:
        document: openapi.yaml as data.

    Raises:
        ValueError: If a reference leads nowhere.
    """
    return [
        Operation(path, method.upper(), _body_schema(document, told), _answers(document, told))
        for path, item in document["paths"].items()
        for method, told in item.items()
        if method in _METHODS
    ]


def _resolved(document: Mapping[str, Any], part: Any) -> Any:
    """Return a part of the contract with its references replaced; the contract has no reference to itself."""
    if isinstance(part, list):
        return [_resolved(document, one) for one in part]
    if not isinstance(part, Mapping):
        return part
    if reference := part.get("$ref"):
        found: Any = document
        for step in str(reference).removeprefix("#/").split("/"):
            if not isinstance(found, Mapping) or step not in found:
                raise ValueError(f"the contract has no {reference}")
            found = found[step]
        return _resolved(document, found)
    return {name: _resolved(document, one) for name, one in part.items()}


def _body_schema(document: Mapping[str, Any], operation: Mapping[str, Any]) -> Mapping[str, Any] | None:
    content = _resolved(document, operation.get("requestBody", {})).get("content", {})
    schema: Mapping[str, Any] | None = content.get("application/json", {}).get("schema")
    return schema


def _answers(document: Mapping[str, Any], operation: Mapping[str, Any]) -> dict[int, Answer]:
    answers = {}
    for status, told in operation.get("responses", {}).items():
        response = _resolved(document, told)
        contents: dict[str, Any] = dict(response.get("content", {}))
        media_type = next(iter(contents), "")
        content = contents.get(media_type, {})
        examples = {name: one["value"] for name, one in content.get("examples", {}).items()}
        if "example" in content:
            examples = {"": content["example"]}
        headers = {
            name: _header_value(header)
            for name, header in response.get("headers", {}).items()
            if header.get("required") and name != "Allow"
        }
        answers[int(status)] = Answer(int(status), headers, media_type, examples)
    return answers


def _header_value(header: Mapping[str, Any]) -> str:
    schema = header.get("schema", {})
    for value in (header.get("example"), schema.get("example"), *schema.get("enum", ())):
        if value is not None:
            return str(value)
    return str(schema.get("minimum", 1))
