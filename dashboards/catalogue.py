"""Every dashboard of the product, in the order in which readers meet them."""

from __future__ import annotations

from typing import Final

from dashboards.boards import gpu, model_data, overview, request_path, serving, session, telemetry
from dashboards.spec import Board

__all__ = ["BOARDS"]

BOARDS: Final[tuple[Board, ...]] = (
    overview.BOARD,
    request_path.BOARD,
    model_data.BOARD,
    serving.BOARD,
    gpu.BOARD,
    telemetry.BOARD,
    session.BOARD,
)
