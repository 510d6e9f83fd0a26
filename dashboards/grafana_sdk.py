"""The parts of grafana-foundation-sdk that are used, imported in one place.

Version 0.0.21 warns at its import that dashboards of the second schema are preferred; files that Grafana provisions
are of the first one on every version from 10 to 13, so that this one warning is of no use here.
"""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    from grafana_foundation_sdk.builders import (
        bargauge,
        dashboard,
        heatmap,
        prometheus,
        stat,
        statetimeline,
        table,
        text,
        timeseries,
    )
    from grafana_foundation_sdk.builders import common as common_builders
    from grafana_foundation_sdk.cog import builder as cog_builder
    from grafana_foundation_sdk.cog import encoder, plugins, runtime, variants
    from grafana_foundation_sdk.models import common
    from grafana_foundation_sdk.models import dashboard as models
    from grafana_foundation_sdk.models import heatmap as heatmap_models
    from grafana_foundation_sdk.models import prometheus as prometheus_models
    from grafana_foundation_sdk.models import text as text_models

__all__ = [
    "bargauge",
    "cog_builder",
    "common",
    "common_builders",
    "dashboard",
    "encoder",
    "heatmap",
    "heatmap_models",
    "models",
    "plugins",
    "prometheus",
    "prometheus_models",
    "runtime",
    "stat",
    "statetimeline",
    "table",
    "text",
    "text_models",
    "timeseries",
    "variants",
]
