"""Triton as a part of the embedded stack: its environment, its supervisor, what the service and Prometheus get."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from inferdeck.errors import CannotRun
from inferdeck.stack.plan import StackPlan

if TYPE_CHECKING:
    from inferdeck.settings import StackSettings
    from inferdeck.stack.parts import Part

__all__ = [
    "asks_triton",
    "find_triton",
    "install_triton",
    "triton_environment",
    "triton_folder",
    "triton_parts",
    "triton_targets",
]

Say = Callable[[str], None]


def triton_folder() -> Path:
    """Return where Triton's environment is, or will be."""
    from alerts.promtool import tools_dir

    return tools_dir() / "triton"


def install_triton(say: Say) -> Path:
    """Make Triton's environment unless it is there, and return its folder.

    Args:
        say: Gets one line for each step.

    Raises:
        CannotRun: If this machine cannot have it.
    """
    from service.triton.home import InstallError, install

    try:
        return install(triton_folder(), say).folder
    except (InstallError, OSError) as error:
        raise CannotRun(str(error), "without it leave the backend at onnx") from error


def find_triton(settings: StackSettings, say: Say) -> dict[str, str]:
    """Return Triton's environment as a tool of the plan, made now if it must be; nothing when it is not asked for.

    Args:
        settings: Whether it is asked for.
        say: Gets one line for each step, and the reason when it cannot be had: then the model in process answers.
    """
    if settings.backend != "triton":
        return {}
    try:
        return {"triton": str(install_triton(say))}
    except CannotRun as error:
        say(f"triton: {error}")
        return {}


def asks_triton(plan: StackPlan) -> bool:
    """Return whether the plan has a Triton that can be started."""
    return "triton_port" in plan.ports and "triton" in plan.tools


def triton_parts(plan: StackPlan) -> list[Part]:
    """Return Triton's supervisor as a part; none where the plan has no port for it."""
    from inferdeck.stack.parts import Part

    if "triton_port" not in plan.ports:
        return []
    ports = plan.ports
    argv = (
        *(sys.executable, "-P", "-m", "service.triton"),
        f"--home={plan.tools.get('triton', '')}",
        f"--models={plan.model_dir}",
        f"--work={plan.state_dir / 'triton'}",
        f"--host={plan.host}",
        f"--http-port={ports['triton_port']}",
        f"--metrics-port={ports['triton_metrics_port']}",
        f"--admin-port={ports['triton_admin_port']}",
    )
    left_out = None if "triton" in plan.tools else "its environment is not there; see `inferdeck triton install`"
    return [Part("triton", ports["triton_port"], argv, "/healthz/ready", ports["triton_admin_port"], left_out=left_out)]


def triton_environment(plan: StackPlan) -> dict[str, str]:
    """Return the settings by which the service asks this Triton; none where there is none."""
    if not asks_triton(plan):
        return {}
    return {
        "INFERDECK_SERVICE_BACKEND": "triton",
        "INFERDECK_SERVICE_TRITON_HOST": plan.host,
        "INFERDECK_SERVICE_TRITON_PORT": str(plan.ports["triton_port"]),
    }


def triton_targets(plan: StackPlan) -> dict[str, str]:
    """Return what Prometheus scrapes of it: setting of the port by job."""
    if not asks_triton(plan):
        return {}
    return {"triton": "triton_metrics_port", "triton-supervisor": "triton_admin_port"}
