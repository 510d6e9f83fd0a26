from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from service.artifacts import load_artifacts
from service.text.clean import FINGERPRINT
from service.training.command import FLOORS, Floors, TrainingError, TrainingReport, train
from service.training.corpus import Corpus, Row, load_corpus

# Made up, so that no test needs the real corpora and none of their texts lands in a report.
WORDS = {
    ("zh", 0): ("很差", "失望", "太糟", "退货", "难吃", "破损"),
    ("zh", 2): ("很好", "满意", "喜欢", "推荐", "漂亮", "舒服"),
    ("en", 0): ("awful", "broken", "terrible", "late", "rude", "worst"),
    ("en", 1): ("flight", "tuesday", "gate", "arrives", "seat", "number"),
    ("en", 2): ("great", "love", "thanks", "perfect", "best", "happy"),
}
FILLERS = {
    "zh": ("房间", "屏幕", "书", "电池", "服务", "的", "了", "我"),
    "en": ("the ", "my ", "phone ", "crew ", "it ", "was "),
}
NO_FLOORS = Floors(0.0, 0.0, 1e-4)
SMALL = {"alphas": (1e-4,), "vocabulary": 300}


@pytest.fixture(scope="module")
def small() -> Corpus:
    """Return a corpus that a linear model learns nearly perfectly in a fraction of a second."""
    rng = random.Random(0)
    rows = []
    for _ in range(700):
        (language, label), words = rng.choice(sorted(WORDS.items()))
        parts = [*rng.choices(FILLERS[language], k=5), *(f"{word} " for word in rng.choices(words, k=2))]
        rng.shuffle(parts)
        rows.append(Row("".join(parts), label, language))
    return load_corpus(rows)


def quick(out: Path, small: Corpus, floors: Floors = NO_FLOORS, **options: Any) -> TrainingReport:
    """Train on the small corpus, silently."""
    return train(
        out,
        progress=lambda _stage, _share: None,
        corpus=small,
        floors=floors,
        options={**SMALL, **options},
    )


def test_training_twice_gives_the_same_bytes(tmp_path: Path, small: Corpus) -> None:
    """Graph and tokenizer are the same to the last byte, so the version is too."""
    first, second = quick(tmp_path / "a", small), quick(tmp_path / "b", small)

    assert first.version == second.version
    for name in ("model.onnx", "tokenizer.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_what_was_trained_loads_and_tells_where_it_comes_from(tmp_path: Path, small: Corpus) -> None:
    """The folder verifies, and its configuration holds figures, fingerprints, limits and versions."""
    report = quick(tmp_path / "m", small)
    artifacts = load_artifacts(tmp_path / "m")
    config = artifacts.config

    assert {
        "MODEL_CARD.md",
        "NOTICE",
        "config.json",
        "model.onnx",
        "reference.npz",
        "single.onnx",
        "tokenizer.json",
    } == set(report.sizes_bytes)
    assert report.sizes_bytes == {path.name: path.stat().st_size for path in (tmp_path / "m").iterdir()}
    assert (FINGERPRINT, small.fingerprint) == (artifacts.cleaning_fingerprint, artifacts.data_fingerprint)
    assert config["training"]["max_logit_difference"] <= 1e-4
    assert {"all", "en", "zh"} == set(config["figures"]["test"])
    assert any("no Chinese neutral" in limit for limit in config["known_limits"])
    assert artifacts.fingerprints().match
    assert report.version in (tmp_path / "m" / "MODEL_CARD.md").read_text(encoding="utf-8")


def test_a_made_up_language_that_is_easy_is_learnt(tmp_path: Path, small: Corpus) -> None:
    """Where the words decide, the model gets nearly everything right: the whole chain works."""
    assert quick(tmp_path / "m", small).config["figures"]["test"]["all"]["accuracy"] > 0.95


def test_no_review_is_written(tmp_path: Path, small: Corpus) -> None:
    """Configuration, card and notice hold no text of the corpus."""
    quick(tmp_path / "m", small)
    papers = "".join(
        (tmp_path / "m" / name).read_text(encoding="utf-8") for name in ("config.json", "MODEL_CARD.md", "NOTICE")
    )

    assert [] == [row.text for row in small.train + small.test if row.text in papers]


@pytest.mark.parametrize(
    ("floors", "words"),
    [
        (Floors(1.01, 0.0, 1e-4), r"macro-F1 0\.\d+|macro-F1 1\.0000, floor 1\.01"),
        (Floors(0.0, 1.01, 1e-4), r"Chinese accuracy .*floor 1\.01"),
        (Floors(0.0, 0.0, 0.0), r"differ from scikit-learn's"),
        (Floors(0.0, 0.0, float("nan")), r"differ from scikit-learn's"),
    ],
)
def test_a_model_below_a_floor_is_not_written(tmp_path: Path, small: Corpus, floors: Floors, words: str) -> None:
    """Too low a figure, or a graph that computes something else, is refused by name, and the old model stays."""
    old = quick(tmp_path / "m", small)

    with pytest.raises(TrainingError, match=words):
        quick(tmp_path / "m", small, floors, seed=5)

    assert old.version == load_artifacts(tmp_path / "m").version


def test_a_corpus_without_chinese_is_below_the_floor(tmp_path: Path, small: Corpus) -> None:
    """A figure that cannot be had counts as missed, not as met."""
    english = load_corpus(r for r in (*small.train, *small.dev, *small.test) if r.language == "en")

    with pytest.raises(TrainingError, match=r"Chinese accuracy 0\.0000"):
        train(
            tmp_path / "m",
            progress=lambda *_: None,
            corpus=english,
            floors=Floors(0.0, 0.1, 1e-4),
            options=SMALL,
        )

    assert not (tmp_path / "m").exists()


def test_progress_goes_up_and_ends_at_one(tmp_path: Path, small: Corpus) -> None:
    """Shares never fall, start at 0 and end at 1, and every stage has a name."""
    told: list[tuple[str, float]] = []
    train(
        tmp_path / "m",
        progress=lambda stage, share: told.append((stage, share)),
        corpus=small,
        floors=NO_FLOORS,
        options=SMALL,
    )
    shares = [share for _stage, share in told]

    assert sorted(shares) == shares
    assert (0.0, 1.0) == (shares[0], shares[-1])
    assert all(stage for stage, _share in told)


def test_a_foreign_folder_is_refused_before_anything_is_done(tmp_path: Path, small: Corpus) -> None:
    """Training does not replace a folder with somebody's files, and says so in one line."""
    (tmp_path / "thesis.txt").touch()

    with pytest.raises(TrainingError, match="something else than a model"):
        quick(tmp_path, small)

    assert ["thesis.txt"] == [path.name for path in tmp_path.iterdir()]


def test_an_impossible_folder_is_one_line_with_a_mend(tmp_path: Path, small: Corpus) -> None:
    """A path below a file cannot be made; the error names it and what to do."""
    (tmp_path / "file").touch()

    with pytest.raises(TrainingError, match="choose another folder") as caught:
        quick(tmp_path / "file" / "below" / "model", small)

    assert "\n" not in str(caught.value)


@pytest.mark.real
def test_the_real_corpora_reach_the_floors(tmp_path: Path) -> None:
    """A full training on the installed reviews passes the floors that are shipped, and repeats its figures."""
    report = train(tmp_path / "model", progress=lambda *_: None)
    config = json.loads((tmp_path / "model" / "config.json").read_text(encoding="utf-8"))
    test = config["figures"]["test"]

    assert test["all"]["macro_f1"] >= FLOORS.macro_f1
    assert test["zh"]["accuracy"] >= FLOORS.chinese_accuracy
    assert test["all"]["calibration_error"] < 0.05
    assert config["data"]["rows"]["train"] > 30_000
    assert report.seconds > 0


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "no texts to learn from"),
        ([Row(f"good item {n}", 2, "en") for n in range(60)], "no text of class negative, neutral"),
    ],
)
def test_data_that_nothing_can_be_learnt_from_is_said(tmp_path: Path, rows: list[Row], said: str) -> None:
    """Empty, or of one class; what was there before stays."""
    with pytest.raises(TrainingError, match=said):
        train(tmp_path / "m", progress=lambda _what, _share: None, corpus=load_corpus(rows))
    assert not (tmp_path / "m").exists()
