"""The parts of the embedded stack as data (command, environment, port, health), and the files they read."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from inferdeck.stack.jaeger import render_jaeger
from inferdeck.stack.plan import StackPlan
from inferdeck.stack.state import make_private_folder, write_private
from inferdeck.stack.stream import stream_parts, stream_targets
from inferdeck.stack.triton import triton_environment, triton_parts, triton_targets
from inferdeck.version import ROOT

__all__ = ["Part", "build_parts", "cluster_targets", "write_configuration"]


@dataclass(frozen=True)
class Part:
    """One process of the stack.

    Attributes:
        name: Its name.
        port: Its main port.
        argv: Program and arguments; empty when it is left out.
        health_path: Path that answers 200 when it is ready.
        health_port: Port of that path.
        env: What it gets beyond the common environment.
        left_out: Why it cannot be started, or None.
        watches: Whether it starts once the others are ready: a Prometheus that is first would see them as down.
    """

    name: str
    port: int
    argv: tuple[str, ...]
    health_path: str
    health_port: int
    env: dict[str, str] = field(default_factory=dict)
    left_out: str | None = None
    watches: bool = False


def common_environment(plan: StackPlan) -> dict[str, str]:
    """Return the environment that all parts share: ours, without settings that belong to another stack."""
    inherited = {
        key: value
        for key, value in os.environ.items()
        if plan.inherit_settings or not key.startswith("INFERDECK_") or key == "INFERDECK_COMMIT"
    }
    inherited.pop("INFERDECK_STACK_TOKEN", None)
    return inherited | {
        "INFERDECK_RING_DIR": str(plan.ring_dir),
        "INFERDECK_STATE_DIR": str(plan.state_dir),
        # what a killed part said last must be in its log
        "PYTHONUNBUFFERED": "1",
        # a part must find our packages from any working folder, and `service` there must be ours
        "PYTHONPATH": str(ROOT),
    }


def _module(name: str) -> tuple[str, ...]:
    # -P keeps the working folder off the path: a folder called `service` there would win over ours
    return (sys.executable, "-P", "-m", name)


def _tool(plan: StackPlan, name: str) -> str | None:
    """Return why *name* cannot be started, or None when it can."""
    return None if plan.tools.get(name) else f"{name} was not found; `python -m inferdeck.tool_install` fetches it"


def build_parts(plan: StackPlan) -> list[Part]:
    """Return the parts in the order of their start.

    Args:
        plan: The stack.
    """
    ports = plan.ports
    service = Part(
        "service",
        ports["service_port"],
        _module("service"),
        "/healthz/ready",
        ports["admin_port"],
        {
            "INFERDECK_SERVICE_HOST": plan.host,
            "INFERDECK_SERVICE_PORT": str(ports["service_port"]),
            "INFERDECK_SERVICE_ADMIN_PORT": str(ports["admin_port"]),
            "INFERDECK_SERVICE_MODEL_DIR": str(plan.model_dir),
            "INFERDECK_SERVICE_WORKERS": str(plan.service_workers),
            "INFERDECK_SERVICE_ADMIN_HOST": plan.host,
            "INFERDECK_SERVICE_MIDDLEWARE": ",".join(plan.service_middleware),
            **triton_environment(plan),
            **plan.service_env,
        },
    )
    exporter = Part(
        "exporter",
        ports["exporter_port"],
        _module("exporters"),
        "/healthz",
        ports["exporter_port"],
        {
            "INFERDECK_EXPORTER_HOST": plan.host,
            "INFERDECK_EXPORTER_PORT": str(ports["exporter_port"]),
            # the training's reference lies there
            "INFERDECK_SERVICE_MODEL_DIR": str(plan.model_dir),
        }
        | _span_target(plan)
        | plan.exporter_env,
    )
    triage = Part(
        "triage",
        ports["triage_port"],
        _module("runbooks"),
        "/healthz",
        ports["triage_port"],
        {
            "INFERDECK_TRIAGE_HOST": plan.host,
            "INFERDECK_TRIAGE_PORT": str(ports["triage_port"]),
            # triage asks Prometheus itself: an alert carries a value, not the minutes before it
            "INFERDECK_PROMETHEUS_URL": plan.url("prometheus_port"),
        },
    )
    jaeger = [_jaeger(plan)] if "jaeger" in plan.tools else []
    before, beside = [*triton_parts(plan), *jaeger], stream_parts(plan)
    return [*before, service, exporter, triage, *beside, _alertmanager(plan), _prometheus(plan)]


def _span_target(plan: StackPlan) -> dict[str, str]:
    """Return where the exporter sends spans: the stack's Jaeger, unless the user set a target."""
    name = "INFERDECK_EXPORTER_OTLP_ENDPOINT"
    theirs = common_environment(plan).get(name)
    if "jaeger" not in plan.tools or theirs:
        return {}
    # It listens over HTTP alone.
    return {name: plan.url("jaeger_otlp_port"), "INFERDECK_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}


def _jaeger(plan: StackPlan) -> Part:
    port = plan.ports["jaeger_port"]
    argv = (plan.tools["jaeger"], "--config", str(plan.state_dir / "run" / "jaeger.json"))
    # its API answers as soon as it can be asked; before the exporter, whose first spans would wait else
    return Part("jaeger", port, argv, "/api/services", port)


def _alertmanager(plan: StackPlan) -> Part:
    port = plan.ports["alertmanager_port"]
    argv = (
        plan.tools.get("prometheus-alertmanager", ""),
        f"--config.file={plan.state_dir / 'run' / 'alertmanager.yml'}",
        f"--storage.path={plan.state_dir / 'alertmanager'}",
        f"--web.listen-address={plan.host}:{port}",
        f"--web.external-url={plan.url('alertmanager_port')}",
        # empty: without it Alertmanager 0.25 opens its gossip port to the network
        "--cluster.listen-address=",
        "--log.level=warn",
    )
    return Part("alertmanager", port, argv, "/-/ready", port, left_out=_tool(plan, "prometheus-alertmanager"))


def _prometheus(plan: StackPlan) -> Part:
    port = plan.ports["prometheus_port"]
    argv = (
        plan.tools.get("prometheus", ""),
        f"--config.file={plan.state_dir / 'run' / 'prometheus.yml'}",
        f"--storage.tsdb.path={plan.state_dir / 'prometheus'}",
        f"--storage.tsdb.retention.time={plan.retention}",
        f"--storage.tsdb.retention.size={plan.retention_size}",
        f"--web.listen-address={plan.host}:{port}",
        # else links in notifications name the machine, where nobody listens
        f"--web.external-url={plan.url('prometheus_port')}",
        # exemplars lead from a latency bucket to the trace of a request in it
        "--enable-feature=exemplar-storage",
        "--log.level=warn",
    )
    return Part("prometheus", port, argv, "/-/ready", port, left_out=_tool(plan, "prometheus"), watches=True)


def rule_files() -> list[Path]:
    """Return the shipped rule files."""
    return sorted((ROOT / "alerts" / "rules").glob("*.yml"))


def cluster_targets(state_dir: Path) -> Path:
    """Return the file that may name a kube-state-metrics for the stack's Prometheus to scrape."""
    return state_dir / "run" / "kube-state-metrics.json"


def write_configuration(plan: StackPlan) -> None:
    """Write what Prometheus and Alertmanager read, rendered by `alerts` from the plan's ports.

    Args:
        plan: The stack.
    """
    from alerts.alertmanager_config import render_alertmanager
    from alerts.prometheus_config import Scrape, render_prometheus

    run = make_private_folder(plan.state_dir / "run")
    if "jaeger" in plan.tools:
        ports = plan.ports["jaeger_port"], plan.ports["jaeger_otlp_port"]
        write_private(run / "jaeger.json", render_jaeger(plan.host, *ports))
    write_private(run / "alertmanager.yml", render_alertmanager(f"{plan.url('triage_port')}/webhook"))
    targets = {
        "service": "admin_port",
        "inferdeck-exporter": "exporter_port",
        "triage": "triage_port",
        "prometheus": "prometheus_port",
        **triton_targets(plan),
        **stream_targets(plan),
    }
    text = render_prometheus(
        [Scrape(job, f"{plan.host}:{plan.ports[setting]}") for job, setting in targets.items()],
        f"{plan.host}:{plan.ports['alertmanager_port']}" if plan.tools.get("prometheus-alertmanager") else None,
        rule_files(),
        interval=plan.scrape_interval_seconds,
        cluster_targets=cluster_targets(plan.state_dir),
    )
    write_private(run / "prometheus.yml", text)
