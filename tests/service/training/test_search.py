"""A search stays within production's limits, goes on where it was, and says in one line what stands in its way."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import optuna
import pytest

from service.training import search as searching
from service.training.command import Floors, TrainingError, train
from service.training.corpus import Corpus, Row, load_corpus
from service.training.linear import BUCKETS
from service.training.publish import training_lock
from service.training.search import PENALTY, Limits, SearchError, memory_bytes, search

VOCABULARIES = (150, 200)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """Return three classes, each told by one word, in two languages."""
    words = (("bad", "坏"), ("flat", "平"), ("good", "好"))
    return load_corpus(
        Row(f"{words[label][chinese]} item {number}", label, ("en", "zh")[chinese])
        for number in range(60)
        for label in range(3)
        for chinese in range(2)
    )


def run(corpus: Corpus, database: Path, trials: int = 3, **limits: Any) -> tuple[searching.Found, list[str]]:
    """Return what was found and what was told."""
    told: list[str] = []
    found = search(
        corpus,
        database,
        lambda what, _share: told.append(what),
        limits=Limits(trials=trials, **({"batch_seconds": 30.0} | limits)),
        vocabularies=VOCABULARIES,
    )
    return found, told


@pytest.fixture(autouse=True)
def _small_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "_DEFAULTS", searching._DEFAULTS | {"vocabulary": 200})


def study_of(database: Path) -> optuna.Study:
    """Return the only study of a database."""
    return optuna.load_study(study_name=None, storage=f"sqlite:///{database}")


def test_a_search_goes_on_where_it_was(corpus: Corpus, tmp_path: Path) -> None:
    """Trials of earlier runs count; a finished study is not gone on with."""
    database = tmp_path / "study.db"
    first, told = run(corpus, database, 2)
    assert (2, ["trial 1 of 2", f"trial 2 of 2, best {first.dev_macro_f1:.4f}"]) == (first.trials, told[:1] + told[1:])
    second, told = run(corpus, database, 3)
    assert (3, 1) == (second.trials, len(told))
    assert second.dev_macro_f1 >= first.dev_macro_f1
    assert [] == run(corpus, database, 3)[1]


def test_the_defaults_are_tried_first(corpus: Corpus, tmp_path: Path) -> None:
    """A search cannot end below them."""
    run(corpus, tmp_path / "study.db", 1)
    assert searching._DEFAULTS == study_of(tmp_path / "study.db").trials[0].params


def test_what_production_cannot_run_is_worth_minus_a_hundred(corpus: Corpus, tmp_path: Path) -> None:
    """Batches over the memory are never measured; the best is within it."""
    least = memory_bytes(200 + BUCKETS, 16)
    found, _ = run(corpus, tmp_path / "study.db", 12, memory_bytes=least)
    trials = study_of(tmp_path / "study.db").trials
    over = [one for one in trials if one.user_attrs["memory_bytes"] > least]
    assert over
    assert {PENALTY} == {one.value for one in over}
    assert all("batch_seconds" not in one.user_attrs for one in over)
    assert (found.memory_bytes <= least, found.refused) == (True, len(over))


@pytest.mark.parametrize("limits", [{"memory_bytes": 1}, {"batch_seconds": 0.0}])
def test_nothing_within_the_limits_is_said(corpus: Corpus, tmp_path: Path, limits: dict[str, Any]) -> None:
    """Memory is estimated, latency measured."""
    with pytest.raises(SearchError, match="none of 2 trials is within the limits"):
        run(corpus, tmp_path / "study.db", 2, **limits)


def test_memory_grows_with_model_and_batch() -> None:
    """Parameters times four bytes times 1.2, and what is looked up."""
    assert memory_bytes(10**9, 16) - memory_bytes(10**8, 16) == pytest.approx(0.9e9 * 3 * 4 * 1.2)
    assert memory_bytes(1000, 128) > memory_bytes(1000, 16)
    assert memory_bytes(10**9, 16) > Limits().memory_bytes > memory_bytes(16_384 + BUCKETS, 128)


def test_time_ends_it_as_well(corpus: Corpus, tmp_path: Path) -> None:
    """The trial that runs is finished."""
    times = iter(range(0, 100_000, 40))
    found = search(
        corpus,
        tmp_path / "study.db",
        lambda _what, _share: None,
        limits=Limits(trials=50, seconds=100.0, batch_seconds=30.0),
        vocabularies=VOCABULARIES,
        clock=lambda: float(next(times)),
    )
    assert 2 == found.trials


def test_a_trial_that_was_killed_does_not_count(corpus: Corpus, tmp_path: Path) -> None:
    """It stays in the study as failed."""
    run(corpus, tmp_path / "study.db", 1)
    study_of(tmp_path / "study.db").ask()
    assert 2 == run(corpus, tmp_path / "study.db", 2)[0].trials
    states = [one.state.name for one in study_of(tmp_path / "study.db").trials]
    assert ["COMPLETE", "FAIL", "COMPLETE"] == states


def test_another_search_on_the_database_is_named(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No second one writes into it."""
    monkeypatch.setattr(searching, "_LOCK_SECONDS", 0.1)
    database = tmp_path / "study.db"
    with training_lock(database, lambda: None), pytest.raises(SearchError, match="another search works on"):
        run(corpus, database)


def test_a_database_that_is_locked_is_named(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By somebody who does not know our lock: SQLite's own."""
    monkeypatch.setattr(searching, "_DATABASE_SECONDS", 0.1)
    database = tmp_path / "study.db"
    run(corpus, database, 1)
    holder = sqlite3.connect(database)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(SearchError, match=r"cannot be used as a study: .*locked.*--study"):
            run(corpus, database, 2)
    finally:
        holder.close()


def test_a_file_that_is_no_database_is_named(corpus: Corpus, tmp_path: Path) -> None:
    """And is left as it is."""
    database = tmp_path / "study.db"
    database.write_text("these are notes, and no database at all\n" * 40)
    with pytest.raises(SearchError, match="cannot be used as a study"):
        run(corpus, database)
    assert database.read_text().startswith("these are notes")


def test_data_that_nothing_can_be_learnt_from_makes_no_study(tmp_path: Path) -> None:
    """Said before the first trial."""
    with pytest.raises(ValueError, match="no texts to learn from"):
        run(load_corpus([]), tmp_path / "study.db")
    assert not (tmp_path / "study.db").exists()


def test_the_best_is_trained_and_on_the_card(corpus: Corpus, tmp_path: Path) -> None:
    """With the figures that it was chosen by."""
    report = train(
        tmp_path / "m",
        progress=lambda _what, _share: None,
        corpus=corpus,
        floors=Floors(0.0, 0.0, 1e-3),
        study=lambda data, _progress: run(data, tmp_path / "study.db", 2)[0],
    )
    found = report.config["training"]["search"]
    assert [f"{found['penalty']:g}"] == list(report.config["training"]["dev_macro_f1_by_penalty"])
    assert report.config["figures"]["dev"]["all"]["macro_f1"] == pytest.approx(found["dev_macro_f1"])
    assert "best on dev of 2 trials" in (tmp_path / "m" / "MODEL_CARD.md").read_text()


def test_a_search_that_fails_replaces_nothing(corpus: Corpus, tmp_path: Path) -> None:
    """Data of one class, as without a search."""
    rows = [Row(f"good item {number}", 2, "en") for number in range(60)]
    with pytest.raises(TrainingError, match="no text of class negative, neutral"):
        train(
            tmp_path / "m",
            progress=lambda _what, _share: None,
            corpus=load_corpus(rows),
            study=lambda data, _progress: run(data, tmp_path / "study.db", 2)[0],
        )
    assert not (tmp_path / "m").exists()
