"""The stream of user queries as a part of the embedded stack, where it is asked for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from inferdeck.stack.plan import StackPlan

if TYPE_CHECKING:
    from inferdeck.stack.parts import Part

__all__ = ["stream_folder", "stream_parts", "stream_targets"]

_PORT = "stream_port"


def stream_folder(state_dir: Path) -> Path:
    """Return the folder whose files are read where no other source is set."""
    return state_dir / "stream" / "in"


def stream_parts(plan: StackPlan) -> list[Part]:
    """Return the stream as a part; none where the plan has no port for it."""
    from inferdeck.stack.parts import Part, common_environment

    if _PORT not in plan.ports:
        return []
    env = {"INFERDECK_STREAM_HOST": plan.host, "INFERDECK_STREAM_PORT": str(plan.ports[_PORT])}
    theirs = common_environment(plan)
    if not theirs.get("INFERDECK_STREAM_FOLDER") and not theirs.get("INFERDECK_STREAM_BROKERS"):
        folder = stream_folder(plan.state_dir)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        env["INFERDECK_STREAM_FOLDER"] = str(folder)
    port = plan.ports[_PORT]
    # -P keeps the working folder off the path: a folder called `service` there would win over ours
    return [Part("stream", port, (sys.executable, "-P", "-m", "service.stream"), "/healthz/ready", port, env)]


def stream_targets(plan: StackPlan) -> dict[str, str]:
    """Return what Prometheus scrapes of it: setting of the port by job."""
    return {"stream": _PORT} if _PORT in plan.ports else {}
