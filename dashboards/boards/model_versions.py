"""Two versions of the model beside each other: a section of the board about model and data."""

from __future__ import annotations

from typing import Final

from dashboards.expr import like, per_minute, pick, quantile, share, total
from dashboards.spec import Panel, Query

__all__ = ["VERSIONS"]

_NONE: Final = "One version of the model is served."
_COMPARED: Final = total("model_version_comparisons_total", like("result", "same|flipped"))

VERSIONS: Final = (
    Panel(
        key="version-requests",
        id=30,
        title="Requests by version",
        kind="timeseries",
        unit="short",
        description="Requests a minute by the version that was asked and what came of it. What is not ok was answered "
        "by the stable version within the same request.",
        no_data=_NONE,
        queries=(
            Query(
                per_minute("model_version_requests_total", by="role, result"),
                "{{role}} {{result}}",
            ),
        ),
        alerts=("model_version_errors",),
        width=12,
        minimum=0,
    ),
    Panel(
        key="version-time",
        id=31,
        title="Time in the model by version",
        kind="timeseries",
        unit="s",
        description="Median and P95 of the time in the model. Both versions get the same kind of requests at the same "
        "time, so that nothing but the version parts them.",
        no_data=_NONE,
        queries=tuple(
            Query(quantile(q, "model_version_seconds", by="role"), f"{{{{role}}}} {name}", may_be_empty=_NONE)
            for q, name in ((0.5, "median"), (0.95, "P95"))
        ),
        alerts=("canary_regression",),
        width=12,
        minimum=0,
    ),
    Panel(
        key="version-flips",
        id=32,
        title="Compared answers with another label",
        kind="timeseries",
        unit="percentunit",
        description="Share of the canary's compared answers to which the stable version gives another label. It is "
        "compared after the answer was sent, on a part of the requests.",
        no_data=_NONE,
        queries=(
            Query(
                share(total("model_version_comparisons_total", like("result", "flipped")), _COMPARED),
                "another label",
                may_be_empty=_NONE,
            ),
        ),
        width=8,
        minimum=0,
    ),
    Panel(
        key="version-confidence",
        id=33,
        title="Confidence by version",
        kind="timeseries",
        unit="percentunit",
        description="Median and P5 of the confidence by the version that answered. A new version that is much "
        "surer, or much less sure, on the same requests is calibrated otherwise.",
        no_data="No answers in this time.",
        queries=tuple(
            Query(quantile(q, "model_output_confidence", by="role"), f"{{{{role}}}} {name}")
            for q, name in ((0.5, "median"), (0.05, "P5"))
        ),
        width=8,
        minimum=0,
        maximum=1,
    ),
    Panel(
        key="version-share",
        id=34,
        title="Share of the canary, and rollbacks",
        kind="timeseries",
        unit="percentunit",
        description="Share of the sessions that go to the canary. It falls to 0 when the canary is taken "
        "back, by itself or by hand; the reason is in the service's log and in `inferdeck canary status`.",
        no_data="The service is not there.",
        queries=(Query(f"max({pick('model_canary_share_ratio')})", "share"),),
        width=8,
        minimum=0,
        maximum=1,
    ),
)
