"""The stream is a part of a stack that asks for it, reads its folder unless told otherwise, and is scraped."""

from __future__ import annotations

from pathlib import Path

import pytest

from inferdeck.drill.program import read_program
from inferdeck.drill.scene import fresh_plan
from inferdeck.settings import STREAM_PORT_FIELDS, load_settings
from inferdeck.stack.parts import build_parts, write_configuration
from inferdeck.stack.plan import StackPlan, plan_on_free_ports
from inferdeck.stack.stream import stream_folder


def plan(folder: Path, *, stream: bool) -> StackPlan:
    """Return a plan."""
    return plan_on_free_ports(load_settings(stream=stream), {}, folder / "state", folder / "rows")


def test_a_stack_that_does_not_ask_for_it_knows_nothing_of_it(tmp_path: Path) -> None:
    """No port, no part, no target."""
    plain = plan(tmp_path, stream=False)
    write_configuration(plain)

    assert not set(STREAM_PORT_FIELDS) & set(plain.ports)
    assert "stream" not in {part.name for part in build_parts(plain)}
    assert "job_name: stream" not in (plain.state_dir / "run" / "prometheus.yml").read_text(encoding="utf-8")


def test_a_stack_that_asks_for_it_reads_its_folder_and_scrapes_it(tmp_path: Path) -> None:
    """The folder is there before anybody writes into it."""
    asked = plan(tmp_path, stream=True)
    write_configuration(asked)
    part = next(part for part in build_parts(asked) if part.name == "stream")
    folder, port = stream_folder(asked.state_dir), asked.ports["stream_port"]

    assert (str(folder), str(port)) == (part.env["INFERDECK_STREAM_FOLDER"], part.env["INFERDECK_STREAM_PORT"])
    assert folder.is_dir()
    assert f"{asked.host}:{port}" in (asked.state_dir / "run" / "prometheus.yml").read_text(encoding="utf-8")


def test_a_source_that_is_set_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sources are refused by the stream itself."""
    monkeypatch.setenv("INFERDECK_STREAM_BROKERS", "127.0.0.1:9092")
    from dataclasses import replace

    part = next(
        part
        for part in build_parts(replace(plan(tmp_path, stream=True), inherit_settings=True))
        if part.name == "stream"
    )

    assert "INFERDECK_STREAM_FOLDER" not in part.env


def test_a_program_may_ask_for_it(tmp_path: Path) -> None:
    """As with STREAM = True."""
    file = tmp_path / "p.py"
    file.write_text('SLUG = "a"\nSTREAM = True\ndef cause(stack):\n    yield\n')
    tools = {"prometheus": "/p", "prometheus-alertmanager": "/a"}

    assert read_program(file).stream
    assert "stream_port" in fresh_plan(load_settings(), tools, tmp_path / "a", stream=True).ports
    assert "stream_port" not in fresh_plan(load_settings(), tools, tmp_path / "b").ports
