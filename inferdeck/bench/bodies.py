"""Real reviews as the bodies of requests, for whoever loads the service."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from inferdeck.errors import CannotRun

__all__ = ["write_bodies"]

REVIEWS: Final = 512


def write_bodies(target: Path) -> Path:
    """Write real reviews, cleaned as for the demo's traffic, as bodies that pass the contract."""
    from service.text.contract import to_contract

    try:
        from service.training.corpus import review_texts

        texts = [text for text in map(to_contract, review_texts(REVIEWS, 1)) if text]
    except ImportError as error:
        raise CannotRun(f"no reviews to send ({error.name} is missing)", "pip install 'inferdeck[train]'") from error
    lines = [json.dumps({"text": text, "product_id": "AB12345678"}, ensure_ascii=False) for text in texts]
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return target
