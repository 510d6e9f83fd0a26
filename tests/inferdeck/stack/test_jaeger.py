"""Jaeger in the stack: found or left out, loopback alone, bounded, and the exporter's target."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inferdeck.settings import JAEGER_PORTS, load_settings
from inferdeck.stack.jaeger import find_jaeger, jaeger_config, render_jaeger
from inferdeck.stack.parts import Part, build_parts
from inferdeck.stack.plan import StackPlan, plan_on_free_ports

TOOLS = {"prometheus": "/p", "prometheus-alertmanager": "/a", "jaeger": "/j"}


def plan_of(folder: Path, tools: dict[str, str], *, jaeger: bool = True) -> StackPlan:
    """Return a plan on free ports."""
    return plan_on_free_ports(load_settings(), tools, folder / "state", folder / "rows", jaeger=jaeger)


def part(plan: StackPlan, name: str) -> Part:
    """Return a part of a plan."""
    return next(one for one in build_parts(plan) if one.name == name)


def test_it_is_found_in_the_tools_folder_and_on_path(tmp_path: Path) -> None:
    """PATH comes first; nothing there is None."""
    for name in ("tools/bin", "path"):
        (tmp_path / name).mkdir(parents=True)
    assert find_jaeger({"PATH": str(tmp_path / "path"), "INFERDECK_TOOLS_DIR": str(tmp_path / "tools")}) is None

    for place in ("tools/bin", "path"):
        (tmp_path / place / "jaeger").write_text("#!/bin/sh\n")
        (tmp_path / place / "jaeger").chmod(0o755)
        found = find_jaeger({"PATH": str(tmp_path / "path"), "INFERDECK_TOOLS_DIR": str(tmp_path / "tools")})

        assert tmp_path / place / "jaeger" == found


def test_all_that_listens_listens_on_the_given_address() -> None:
    """The query listens on every address unless it is told otherwise."""
    text = render_jaeger("127.0.0.1", 1111, 2222, 33)
    config = json.loads(text)

    assert jaeger_config("127.0.0.1", 1111, 2222, 33) == config
    assert 3 == text.count('"endpoint": "127.0.0.1:') == text.count('"endpoint"')
    assert 33 == config["extensions"]["jaeger_storage"]["backends"]["traces"]["memory"]["max_traces"]


def test_the_exporter_sends_to_the_jaeger_that_starts_before_it(tmp_path: Path) -> None:
    """Its first spans wait for nobody."""
    plan = plan_of(tmp_path, TOOLS)

    names = [one.name for one in build_parts(plan)]

    assert names.index("jaeger") < names.index("exporter")
    assert plan.url("jaeger_otlp_port") == part(plan, "exporter").env["INFERDECK_EXPORTER_OTLP_ENDPOINT"]
    assert 8 == len(set(plan.ports.values()))


@pytest.mark.parametrize(("tools", "jaeger"), [(TOOLS, False), ({"prometheus": "/p"}, True)])
def test_without_it_nothing_of_it_is_left(tools: dict[str, str], jaeger: bool, tmp_path: Path) -> None:
    """Not asked for, or not here: no part, no port, no target."""
    plan = plan_of(tmp_path, tools, jaeger=jaeger)

    assert "jaeger" not in [one.name for one in build_parts(plan)]
    assert not set(JAEGER_PORTS) & plan.ports.keys()
    assert "INFERDECK_EXPORTER_OTLP_ENDPOINT" not in part(plan, "exporter").env


def test_a_target_that_the_user_set_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their collector gets the spans, as before."""
    from dataclasses import replace

    monkeypatch.setenv("INFERDECK_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
    plan = replace(plan_of(tmp_path, TOOLS), inherit_settings=True)

    assert "INFERDECK_EXPORTER_OTLP_ENDPOINT" not in part(plan, "exporter").env


def test_a_port_of_a_jaeger_that_is_not_here_is_nobodys_worry() -> None:
    """Somebody else's Jaeger on 16686 must not keep a stack without one from starting."""
    settings = load_settings()

    assert set(JAEGER_PORTS) == settings.ports.keys() - settings.ports_with({"prometheus"}).keys()
    assert settings.ports == settings.ports_with({"jaeger"})
