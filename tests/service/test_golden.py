"""The real model behind the real service answers as plain arithmetic over its weights says."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from tokenizers import Tokenizer

from service.app import load_model
from service.filters.masking import mask
from service.reviews import review_requests
from service.training.ensure import ensure_model

pytestmark = [pytest.mark.real, pytest.mark.anyio]

MULTIPLIER, BUCKETS = 31337, 131_072


class Reference:
    """Logits by sums over table rows, written from the graph's description and not from its code."""

    def __init__(self, folder: Path) -> None:
        graph = onnx.load(str(folder / "model.onnx")).graph
        tables = {item.name: numpy_helper.to_array(item).astype(np.float64) for item in graph.initializer}
        self.tokens, self.pairs, self.bias = tables["token_table"], tables["pair_table"], tables["bias"]
        self.config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_truncation()

    def fits(self, text: str) -> bool:
        """Return whether the model reads a text at once; longer ones are read by windows (test_long_texts.py)."""
        return len(self.tokenizer.encode(text).ids) <= int(self.config["max_tokens"])

    def judge(self, text: str) -> tuple[str, float]:
        """Return label and confidence of a text."""
        ids = self.tokenizer.encode(text).ids[: self.config["max_tokens"]]
        logits = self.bias.copy()
        if ids:
            pairs = [(a * MULTIPLIER + b) % BUCKETS for a, b in itertools.pairwise(ids)]
            total = sum((self.tokens[i] for i in ids), np.zeros(3)) + sum((self.pairs[i] for i in pairs), np.zeros(3))
            logits += total / math.sqrt(len(ids))
        weights = [math.exp(value / self.config["temperature"]) for value in logits]
        best = max(range(3), key=weights.__getitem__)
        return self.config["labels"][best], weights[best] / sum(weights)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the whole model, trained for this."""
    folder = tmp_path_factory.mktemp("whole") / "model"
    ensure_model(folder, lambda *_: None)
    return folder


async def test_real_reviews_of_both_languages_are_judged_as_the_weights_say(
    serve: Any, judge: Any, folder: Path
) -> None:
    """Every answer over HTTP has the reference's label and, within float32, its confidence."""
    reference = Reference(folder)
    made = review_requests(400, seed=5)
    labels: Counter[str] = Counter()
    chinese = longer = 0
    async with serve(model_dir=folder, load=load_model) as (client, _app):
        for body in made.bodies:
            response = await client.post("/v1/sentiment", content=body, headers={"content-type": "application/json"})
            answer = judge.answer(response)
            text = json.loads(body)["text"]
            # What the model is shown: one of these tweets gives a telephone number.
            label, confidence = reference.judge(mask(text).text)
            assert response.status_code == 200
            if not reference.fits(mask(text).text):
                longer += 1
                continue
            assert answer["sentiment"] == label
            assert answer["confidence"] == pytest.approx(confidence, abs=2e-5)
            labels[label] += 1
            chinese += any("\u4e00" <= character <= "\u9fff" for character in text)
    assert set(labels) == {"negative", "neutral", "positive"}
    assert longer <= 20
    assert 100 < chinese < 300
    assert made.share.before_ratio < made.share.after_ratio
