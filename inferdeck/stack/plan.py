"""The plan of one stack: every port, folder and program decided before anything starts."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from inferdeck.settings import StackSettings
from inferdeck.stack.ports import free_ports

__all__ = ["StackPlan", "plan_from_settings", "plan_on_free_ports"]


@dataclass(frozen=True)
class StackPlan:
    """What a supervisor needs to start a stack.

    Attributes:
        state_dir: Logs, pids, reports, Prometheus' data; absolute.
        ring_dir: Rows; absolute.
        model_dir: Model artefacts; absolute.
        ports: Port by the name of its setting.
        tools: Path of each program of Prometheus and Jaeger that was found; what is missing is left out of the stack.
        service_middleware: `path.py:callable` or `module:callable`, inside the recorder.
        service_env: Further environment of the service.
        exporter_env: Further environment of the exporter.
        inherit_settings: Whether the parts see the user's own INFERDECK_ variables; in drills they do not, so that
            runs are alike.
    """

    state_dir: Path
    ring_dir: Path
    model_dir: Path
    host: str
    ports: dict[str, int]
    tools: dict[str, str]
    service_workers: int = 1
    scrape_interval_seconds: int = 5
    ready_timeout_seconds: float = 90.0
    stop_grace_seconds: float = 8.0
    retention: str = "24h"
    retention_size: str = "512MB"
    service_middleware: tuple[str, ...] = ()
    service_env: dict[str, str] = field(default_factory=dict)
    exporter_env: dict[str, str] = field(default_factory=dict)
    inherit_settings: bool = True

    def url(self, port_setting: str) -> str:
        """Return the base URL of the listener whose setting is *port_setting*."""
        return f"http://{self.host}:{self.ports[port_setting]}"

    def to_json(self) -> dict[str, Any]:
        """Return the plan as plain JSON values."""
        paths = {name: str(getattr(self, name)) for name in ("state_dir", "ring_dir", "model_dir")}
        return asdict(self) | paths | {"service_middleware": list(self.service_middleware)}

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> StackPlan:
        """Read a plan back.

        Raises:
            TypeError: If the fields are not a plan's.
        """
        paths = {name: Path(raw[name]) for name in ("state_dir", "ring_dir", "model_dir")}
        return cls(**{**raw, **paths, "service_middleware": tuple(raw["service_middleware"])})


def plan_from_settings(settings: StackSettings, tools: dict[str, str]) -> StackPlan:
    """Return the plan that the user's settings ask for."""
    return StackPlan(
        state_dir=settings.state_path,
        ring_dir=settings.ring_path,
        model_dir=settings.model_path,
        host=settings.host,
        ports=settings.ports_with(tools),
        tools=tools,
        service_workers=settings.service_workers,
        scrape_interval_seconds=settings.scrape_interval_seconds,
        ready_timeout_seconds=settings.ready_timeout_seconds,
        stop_grace_seconds=settings.stop_grace_seconds,
        retention=settings.retention,
        retention_size=settings.retention_size,
    )


def plan_on_free_ports(
    settings: StackSettings, tools: dict[str, str], state_dir: Path, ring_dir: Path, *, jaeger: bool = False
) -> StackPlan:
    """Return a plan for a stack beside whatever else runs: free ports, folders of its own, else shipped defaults.

    Args:
        settings: Where the model is, and the address to bind.
        tools: Programs found.
        state_dir: Fresh state folder.
        ring_dir: Fresh folder of rows.
        jaeger: Whether Jaeger is started, if it is there: it costs memory, and most runs look at no spans.
    """
    tools = {name: path for name, path in tools.items() if jaeger or name != "jaeger"}
    plan = plan_from_settings(settings, tools)
    ports = dict(zip(plan.ports, free_ports(len(plan.ports), settings.host), strict=True))
    return replace(
        plan,
        state_dir=state_dir,
        ring_dir=ring_dir,
        ports=ports,
        service_workers=1,
        scrape_interval_seconds=5,
        inherit_settings=False,
    )
