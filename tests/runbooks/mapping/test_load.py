"""Mapping files: the shipped ones are sound, and each slip is told with its file, its line and the mend."""

from __future__ import annotations

from pathlib import Path

import pytest

from runbooks.mapping.load import READY, MappingError, find_mapping, load_mapping, ready_names
from runbooks.mapping.model import LabelRule, translate

HEAD = "name: mine\nabout: x\nsource: y\nmetrics:\n"
FINE = "          from: status\n          values:\n            2*: fine\n"


def write(folder: Path, text: str) -> Path:
    """Write a mapping file."""
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ready_names())
def test_a_shipped_mapping_is_found_by_its_name(name: str) -> None:
    """Each names itself as its file does, and tells at least of requests."""
    mapping = find_mapping(name)

    assert name == mapping.name
    assert mapping.replacements("model_requests_total")


def test_the_promised_mappings_are_shipped() -> None:
    """What people run today is there without writing a file."""
    expected = ["fastapi-instrumentator", "opentelemetry-fastapi", "opentelemetry-fastapi-old"]
    assert [*expected, "starlette-exporter", "triton"] == ready_names()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{HEAD}  model_requests: [{{metric: a}}]\n", "mine.yaml:5: model_requests is no name that can be mapped"),
        (f"{HEAD}  model_requests: [{{metric: a}}]\n", "did you mean model_requests_total?"),
        (
            f"{HEAD}  model_requests_total:\n    - metrik: a\n",
            "mine.yaml:6: metrics.model_requests_total.0.metrik is no",
        ),
        (f"{HEAD}  model_requests_total:\n    - {{}}\n", "give either `metric: NAME`, or `sum: NAME` together"),
        (f"{HEAD}  model_latency_seconds:\n    - metric: a\n      unit: hours\n", "mine.yaml:7: "),
        (
            f"{HEAD}  model_latency_seconds:\n    - metric: a\n      unit: bytes\n",
            "mine.yaml:7: bytes cannot be made seconds",
        ),
        (
            f"{HEAD}  model_requests_total:\n    - metric: a\n      labels:\n        outcom: {{value: ok}}\n",
            "mine.yaml:8: model_requests_total has no label outcom (it has: route, outcome)",
        ),
        (
            f"{HEAD}  model_requests_total:\n    - metric: a\n      labels:\n        outcome:\n{FINE}",
            "mine.yaml:11: 'fine' is none of ok, refused",
        ),
        (f"{HEAD}  model_requests_total: [{{sum: a, count: b}}]\n", "mine.yaml:5: model_requests_total is a counter"),
        ("name: mine\nname: mine\n", "mine.yaml:2: name stands twice: remove one"),
        ("name: mine\nabout: [x\n", "mine.yaml:3: "),
        ("about: x\nsource: y\nmetrics: {a: []}\n", "mine.yaml:1: name is missing: add it"),
        ("- a\n", "mine.yaml:1: a mapping file begins with `name: mine`"),
        (f"{HEAD}  model_requests_total:\n    - metric: 'a{{b}}'\n", "mine.yaml:6: "),
    ],
)
def test_a_slip_is_told_with_file_line_and_mend(tmp_path: Path, text: str, said: str) -> None:
    """Whoever writes a mapping at night is sent to the line, not to the manual."""
    with pytest.raises(MappingError) as error:
        load_mapping(write(tmp_path, text))

    assert said in str(error.value)


def test_a_name_that_is_not_there_lists_those_that_are(tmp_path: Path) -> None:
    """Neither a shipped name nor a file: what could be meant is listed."""
    with pytest.raises(MappingError, match=r"no mapping 'fastapi': give a file, or .* fastapi-instrumentator"):
        find_mapping("fastapi")


def test_an_own_mapping_is_given_by_its_path(tmp_path: Path) -> None:
    """A file anywhere will do."""
    path = write(tmp_path, (READY / "triton.yaml").read_text(encoding="utf-8").replace("name: triton", "name: mine"))

    assert "mine" == find_mapping(str(path)).name


def test_the_most_exact_key_wins() -> None:
    """499 is a client that left, whatever 4* is."""
    rule = LabelRule.model_validate({"from": "status", "values": {"4*": "refused", "499": "disconnected", "*": "ok"}})

    assert ["refused", "disconnected", "ok"] == [translate(rule, code) for code in ("404", "499", "200")]


def test_the_mapping_in_the_docs_is_one(tmp_path: Path) -> None:
    """What people copy works."""
    page = (Path(__file__).resolve().parents[3] / "docs/attach.md").read_text(encoding="utf-8")
    (text,) = [block for block in page.split("```") if block.startswith("yaml\nname: mine")]

    mapping = load_mapping(write(tmp_path, text.removeprefix("yaml\n")))

    assert ["model_requests_total", "model_latency_seconds", "runtime_file_descriptors_used_ratio"] == list(
        mapping.metrics
    )
