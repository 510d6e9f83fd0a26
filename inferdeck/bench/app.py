"""The no-op service of the overhead bench: one FastAPI handler, observed as `INFERDECK_BENCH_VARIANT` says.

Every variant answers the same bytes from the same schemas; only what observes the handler differs.
"""

from __future__ import annotations

import os

from fastapi import FastAPI

from inferdeck.bench.contract import Answer, Query, answer

__all__ = ["create_app"]


def create_app(variant: str | None = None, otlp_url: str | None = None) -> FastAPI:
    """Build the app of one variant.

    Args:
        variant: A name of `variants.VARIANTS`; by default `INFERDECK_BENCH_VARIANT`, else bare.
        otlp_url: Where peers post spans; by default `INFERDECK_BENCH_OTLP`.

    Raises:
        ValueError: If the variant is unknown.
    """
    name = variant or os.environ.get("INFERDECK_BENCH_VARIANT", "bare")
    url = otlp_url or os.environ.get("INFERDECK_BENCH_OTLP", "")
    app = FastAPI()
    if name in ("bare", "bare_aa"):
        _bare(app)
    elif name in ("inferdeck_1pct", "inferdeck_100pct"):
        from inferdeck.bench.ours import observe

        observe(app)
    elif name in ("parity", "strongest", "instrumentator"):
        from inferdeck.bench import peers

        if name == "instrumentator":
            peers.count_requests(app)
            _bare(app)
        else:
            peers.observe(app, url, strongest=name == "strongest")
    else:
        raise ValueError(f"unknown variant {name!r}")
    return app


def _bare(app: FastAPI) -> None:
    @app.post("/v1/sentiment")
    async def sentiment(query: Query) -> Answer:
        return answer(query, 0.9)
