"""Reviews as requests."""

from __future__ import annotations

import itertools
import re

from service.contract import read_request
from service.reviews import product_ids, review_requests

TEXTS = ["很好！", "it's <b>fine</b> @somebody", "😀", "x" * 3000, "ok"]


def test_every_body_is_in_the_contract() -> None:
    """Raw texts are cleaned and cut; what holds nothing allowed is left out."""
    made = review_requests(10, texts=TEXTS)
    requests = [read_request(body) for body in made.bodies]
    assert [len(request.text) for request in requests] == [3, 9, 1024, 2]
    assert "somebody" not in requests[1].text
    assert (made.share.texts, made.share.before_ratio, made.share.after_ratio) == (5, 0.4, 0.8)


def test_same_seed_gives_the_same_requests() -> None:
    """Runs can be compared."""
    assert review_requests(4, 1, TEXTS) == review_requests(4, 1, TEXTS)
    assert review_requests(4, 1, TEXTS) != review_requests(4, 2, TEXTS)


def test_product_ids_fit_their_pattern() -> None:
    """Two capital letters and eight digits, and they differ."""
    ids = list(itertools.islice(product_ids(3), 200))
    assert all(re.fullmatch(r"[A-Z]{2}[0-9]{8}", value) for value in ids)
    assert len(set(ids)) == 200


def test_limit_bounds_the_requests() -> None:
    """No text, no request."""
    assert len(review_requests(2, texts=TEXTS).bodies) == 2
    assert review_requests(0, texts=TEXTS).bodies == ()
