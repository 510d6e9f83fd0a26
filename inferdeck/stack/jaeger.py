"""Jaeger v2 as a part of the embedded stack: where the program is found, and the configuration that it runs by.

Written for 2.13 (the Go module v1.76.0 holds that) and newer. Bounded: so many traces are held in memory, the oldest
go first; sessions stay findable for longer in the exporter's archive, which outlives a restart.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from alerts.promtool import tools_dir
from inferdeck.version import ROOT

__all__ = ["MOST_TRACES", "find_jaeger", "jaeger_config", "render_jaeger"]

# Eight spans a trace; measured by `inferdeck bench trace`, 100,000 traces take about 1.3 GB.
MOST_TRACES: Final = 20_000
_STORE: Final = "traces"
_UI: Final = ROOT / "dashboards" / "provisioning" / "jaeger-ui.json"


def find_jaeger(environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return Jaeger's program, from PATH or the tools folder; None when it is in neither.

    Args:
        environ: Where `PATH` and `INFERDECK_TOOLS_DIR` are looked up.
    """
    for search in (environ.get("PATH", ""), str(tools_dir(environ) / "bin")):
        if search and (found := shutil.which("jaeger", path=search)):
            return Path(found).absolute()
    return None


def jaeger_config(host: str, query_port: int, otlp_port: int, most_traces: int = MOST_TRACES) -> dict[str, Any]:
    """Return the configuration of one process that takes OTLP over HTTP and keeps traces in memory.

    Args:
        host: Address to listen on, for all that listens: without it the query listens on every address.
        query_port: Port of the API and the pages.
        otlp_port: Port for spans.
        most_traces: Traces that are held.
    """
    ui = {"ui": {"config_file": str(_UI)}} if _UI.is_file() else {}
    return {
        "service": {
            "extensions": ["jaeger_storage", "jaeger_query"],
            "pipelines": {
                "traces": {"receivers": ["otlp"], "processors": ["batch"], "exporters": ["jaeger_storage_exporter"]}
            },
            # no port for its own metrics: nobody scrapes it here
            "telemetry": {"metrics": {"level": "none"}, "logs": {"level": "warn"}},
        },
        "extensions": {
            "jaeger_storage": {"backends": {_STORE: {"memory": {"max_traces": most_traces}}}},
            "jaeger_query": {
                "storage": {"traces": _STORE},
                "http": {"endpoint": f"{host}:{query_port}"},
                # it always opens one: any free port, which nobody is told
                "grpc": {"endpoint": f"{host}:0"},
                **ui,
            },
        },
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"{host}:{otlp_port}"}}}},
        "processors": {"batch": {"timeout": "200ms"}},
        "exporters": {"jaeger_storage_exporter": {"trace_storage": _STORE}},
    }


def render_jaeger(host: str, query_port: int, otlp_port: int, most_traces: int = MOST_TRACES) -> str:
    """Return the configuration file's text (JSON, which is YAML); arguments as for `jaeger_config`."""
    return json.dumps(jaeger_config(host, query_port, otlp_port, most_traces), indent=1)
