"""Real reviews as requests: what the demo, the drill and the benches send.

The texts come from the training packages' held-out part and are never stored or printed; only shares and counts are.
"""

from __future__ import annotations

import json
import random
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from service.text.contract import ContractShare, contract_share, to_contract
from service.training.corpus import review_texts

__all__ = ["ReviewRequests", "product_ids", "review_requests"]


@dataclass(frozen=True)
class ReviewRequests:
    """Requests made of reviews.

    Attributes:
        bodies: Bodies for POST /v1/sentiment, each within the contract.
        share: How many of the raw texts fit the contract before and after cleaning.
    """

    bodies: tuple[bytes, ...]
    share: ContractShare


def product_ids(seed: int) -> Iterable[str]:
    """Yield product ids without end, the same for the same seed."""
    rng = random.Random(seed)
    while True:
        yield "".join(rng.choices(string.ascii_uppercase, k=2) + rng.choices(string.digits, k=8))


def review_requests(limit: int, seed: int = 0, texts: Sequence[str] | None = None) -> ReviewRequests:
    """Return requests made of real reviews of both languages and all lengths.

    Args:
        limit: Most requests; a review of which the contract allows nothing is left out, so fewer may come back.
        seed: Choice, order and product ids; the same seed gives the same requests.
        texts: Raw texts to use instead of the training packages' held-out reviews.

    Raises:
        CorpusMissing: If the packages that hold the reviews are needed and missing.
        ValueError: If *limit* is negative.
    """
    raw = review_texts(limit, seed) if texts is None else list(texts)[:limit]
    ids = iter(product_ids(seed))
    bodies = tuple(
        json.dumps({"text": text, "product_id": next(ids)}, ensure_ascii=False).encode()
        for text in map(to_contract, raw)
        if text
    )
    return ReviewRequests(bodies, contract_share(raw))
