"""The transformer that is shipped: whole, as its card says, and no text's answer depends on who shares its batch."""

from __future__ import annotations

import json
import logging
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.artifacts import Artifacts, load_artifacts
from service.backend import OnnxBackend, pad
from service.chosen_model import TRANSFORMER_FOLDER, load_chosen
from service.loading import load_onnx
from service.replayed import stored_answers
from service.settings import Settings, SettingsError, load_settings
from tests.service.test_loading import write_model

# float32 in another order of sums: measured below 1e-6, where logits are about 1.
NOISE = 2e-5


@pytest.fixture(scope="module")
def shipped() -> tuple[OnnxBackend, Artifacts]:
    """Return the shipped model, loaded."""
    return load_onnx(TRANSFORMER_FOLDER, 0)


def test_it_is_a_whole_model_of_a_few_megabytes_without_a_text_of_the_corpus(
    shipped: tuple[OnnxBackend, Artifacts],
) -> None:
    """Digests hold, this code cleans as the training did, and the papers lie beside it."""
    _backend, artifacts = shipped

    assert artifacts.fingerprints().match
    assert artifacts.model.stat().st_size < 4_000_000
    assert {"MODEL_CARD.md", "NOTICE"} <= {path.name for path in TRANSFORMER_FOLDER.iterdir()}


def test_the_card_tells_figures_by_language_and_class_time_and_errors() -> None:
    """What people read before they trust it."""
    card = (TRANSFORMER_FOLDER / "MODEL_CARD.md").read_text(encoding="utf-8")

    for part in ("| Chinese |", "| zh | negative |", "| en | neutral |", "| 8x128 |", "一点都不差", "torch's"):
        assert part in card


def test_each_stored_answer_comes_out_again(shipped: tuple[OnnxBackend, Artifacts]) -> None:
    """The same tokens, and the same logits but for float noise of another processor."""
    backend, artifacts = shipped
    stored = stored_answers(artifacts.config)
    assert len(stored) >= 8

    for one in stored:
        found = backend.encode(one.text)
        assert list(one.ids) == found.ids
        np.testing.assert_allclose(backend.forward(*pad([found.ids]))[0], one.logits, atol=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_batch_mates_and_padding_change_nothing(shipped: tuple[OnnxBackend, Artifacts], seed: int) -> None:
    """Whatever the mix of lengths: each row answers as it does alone, the empty text included."""
    backend, artifacts = shipped
    rng = random.Random(seed)
    rows = [[rng.randrange(2, artifacts.vocabulary) for _ in range(rng.choice((0, 1, 7, 40, 512)))] for _ in range(5)]

    together = backend.forward(*pad(rows))

    for row, logits in zip(rows, together, strict=True):
        np.testing.assert_allclose(backend.forward(*pad([row]))[0], logits, atol=NOISE)


def test_it_knows_praise_from_blame(shipped: tuple[OnnxBackend, Artifacts]) -> None:
    """In both languages, on texts that are no riddles."""
    backend, _artifacts = shipped
    texts = (
        "房间很干净，服务也很好，下次还来",
        "太差了，再也不来了",
        "I love it, thank you so much",
        "worst service ever",
    )

    logits = backend.forward(*pad([backend.encode(text).ids for text in texts]))

    assert ["positive", "negative", "positive", "negative"] == [backend.labels[int(row.argmax())] for row in logits]


def settings_of(folder: Path, **overrides: Any) -> Settings:
    """Return settings with a linear model in a folder of its own."""
    return load_settings(model_dir=write_model(folder / "linear"), memory_reserve_bytes=0, **overrides)


def test_the_setting_chooses(tmp_path: Path) -> None:
    """Linear unless it says transformer."""
    linear = settings_of(tmp_path)

    assert linear.model_dir == load_chosen(linear)[1].folder
    assert TRANSFORMER_FOLDER == load_chosen(linear.model_copy(update={"model": "transformer"}))[1].folder


def test_the_linear_model_answers_where_the_transformer_is_damaged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """And the log says so."""
    settings = settings_of(tmp_path, model="transformer")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "config.json").write_text(json.dumps({"format": "?"}))

    with caplog.at_level(logging.ERROR):
        _backend, artifacts = load_chosen(settings, broken)

    assert settings.model_dir == artifacts.folder
    assert "the linear model answers in its place" in caplog.text


def test_triton_is_never_asked_with_the_transformers_tokens(tmp_path: Path) -> None:
    """Its repository holds the linear models."""
    with pytest.raises(SettingsError, match="set backend to onnx"):
        settings_of(tmp_path, model="transformer", backend="triton")


def test_the_folder_is_what_training_writes() -> None:
    """Each file of config.json's digests, and no other model's."""
    assert TRANSFORMER_FOLDER == load_artifacts(TRANSFORMER_FOLDER).folder
