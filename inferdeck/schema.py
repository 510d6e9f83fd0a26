"""The JSON Schemas of our results, as shipped in `inferdeck/schemas`."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

__all__ = ["VERBS", "load_schema", "schema_names", "validate"]

SUFFIX = ".schema.json"
VERBS = (
    "up",
    "down",
    "status",
    "demo",
    "drill",
    "trace",
    "triage",
    "investigate",
    "mitigate",
    "reports",
    "deadletters",
    "doctor",
    "selftest",
    "bundle",
    "erase",
    "rekey",
    "check",
    "build",
    "train",
)


def schema_names() -> list[str]:
    """Return the names of all shipped schemas: those of the verbs, and one for each verb of `bench`."""
    names = [entry.name for entry in files("inferdeck").joinpath("schemas").iterdir()]
    return sorted(name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX))


def load_schema(verb: str) -> dict[str, Any]:
    """Return the schema of a verb's result.

    Raises:
        OSError: If there is none.
        ValueError: If it is no JSON.
    """
    text = files("inferdeck").joinpath("schemas", f"{verb}{SUFFIX}").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def validate(verb: str, result: dict[str, Any]) -> None:
    """Check a whole result against its verb's schema.

    Raises:
        jsonschema.ValidationError: If it has another shape.
    """
    from jsonschema import Draft202012Validator

    Draft202012Validator(load_schema(verb)).validate(result)
