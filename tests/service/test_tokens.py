"""Loads of tokenizers are timed, tokens are kept within their bound, and the series say both."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from exporters import names_tokens
from probes.tokenizing import CacheReading, Loads
from service import token_metrics, tokens
from service.backend_caching import CachingBackend
from service.loading import load_onnx
from service.service_metrics import Snapshot, render
from service.tokens import TokensView, load_tokenizer, look
from tests.service.test_loading import write_model


class Tokenizer:
    """Counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, text: str, **_options: Any) -> Any:
        """Return an encoding with one token."""
        self.asked.append(text)
        return type("Encoding", (), {"ids": [len(text)], "offsets": [(0, len(text))]})()

    def token_to_id(self, _token: str) -> None:
        """Know no token."""

    def no_truncation(self) -> None:
        """Cut nothing."""

    def no_padding(self) -> None:
        """Pad nothing."""


def caching(tokenizer: Tokenizer, texts: int) -> CachingBackend:
    """Return a backend that keeps tokens."""
    return CachingBackend(
        tokenizer,
        None,
        labels=("a", "b"),
        temperature=1.0,
        max_tokens=512,
        vocabulary=1000,
        version="v",
        cache_texts=texts,
    )


def shown(view: TokensView) -> dict[tuple[str, str], float]:
    """Return the tokenizer's series of a service."""
    text = render(Snapshot("1", "c", "m", "f", "ready", {}, tokens=view)).decode()
    return {
        (sample.name, sample.labels.get("which", "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("model_tokenizer")
    }


def test_a_text_that_comes_again_is_not_tokenized_again() -> None:
    """And the answer is the same."""
    tokenizer = Tokenizer()
    backend = caching(tokenizer, 2)

    first, again = backend.encode("eins"), backend.encode("eins")

    assert (["eins"], first) == (tokenizer.asked, again)
    assert CacheReading(1, 2, 0.5) == look(backend, Loads()).cache


def test_the_cache_keeps_to_its_bound() -> None:
    """The text that was not asked for longest goes first."""
    tokenizer = Tokenizer()
    backend = caching(tokenizer, 2)
    for text in ("a", "bb", "a", "ccc", "a", "bb"):
        backend.encode(text)

    assert ["a", "bb", "ccc", "bb"] == tokenizer.asked
    view = look(backend, Loads())
    assert view.cache is not None
    assert (2, 2) == (view.bound, view.cache.entries)


def test_a_cache_that_forgot_its_bound_shows_against_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound that is shown is what was promised, not what the cache has."""
    keep = tokens.keep
    monkeypatch.setattr(tokens, "keep", lambda encode, _entries: keep(encode, 10**6))
    backend = caching(Tokenizer(), 2)
    for number in range(5):
        backend.encode("x" * number)

    series = shown(look(backend, Loads()))
    assert (2.0, 5.0) == (
        series["model_tokenizer_cache_bound_texts", ""],
        series["model_tokenizer_cached_texts", ""],
    )


@pytest.mark.parametrize("backend", [None, object()])
def test_without_a_cache_nothing_is_kept(backend: object) -> None:
    """No ratio either: it would be of nothing."""
    series = shown(look(backend, Loads()))
    assert (0.0, 0.0) == (
        series["model_tokenizer_cache_bound_texts", ""],
        series["model_tokenizer_cached_texts", ""],
    )
    assert ("model_tokenizer_cache_hit_ratio", "") not in series


def test_loads_that_wait_for_each_other_show_as_quickest_and_slowest(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that ran at one time are counted."""
    lock, loads, clock = threading.Lock(), Loads(), threading.Event()

    def read(_path: Path) -> str:
        with lock:
            clock.wait(0.05)
            return "tokenizer"

    monkeypatch.setattr(tokens, "read_tokenizer", read)
    lock.acquire()
    threads = [threading.Thread(target=load_tokenizer, args=(Path("x"), loads)) for _ in range(3)]
    for thread in threads:
        thread.start()
    # all three stand at the lock before the first one gets it
    while loads._running[0].beside < 2:
        clock.wait(0.01)
    lock.release()
    for thread in threads:
        thread.join(60)

    view = look(None, loads)
    assert view.together == 3
    assert view.quickest_seconds is not None
    assert view.slowest_seconds is not None
    assert view.slowest_seconds >= view.quickest_seconds + 0.09
    assert 3.0 == shown(view)["model_tokenizer_concurrent_loads", ""]


@pytest.mark.parametrize("texts", [0, 7])
def test_the_models_tokenizer_is_loaded_under_the_watch(texts: int, tmp_path: Path) -> None:
    """Whether tokens are kept or not; with a bound, they are."""
    pytest.importorskip("onnxruntime")
    before = len(tokens.LOADS.ended)
    backend, _ = load_onnx(write_model(tmp_path / "m"), 0, cache_texts=texts)

    assert len(tokens.LOADS.ended) > before or before == Loads.KEPT
    assert texts == look(backend).bound
    assert isinstance(backend, CachingBackend) == bool(texts)


def test_names_are_those_of_the_names() -> None:
    """Written once on either side of the border."""
    assert names_tokens.LOAD_EXTREMES == token_metrics.LOAD_EXTREMES
    whole = shown(TokensView(2, CacheReading(1, 2, 0.5), 0.1, 0.2, 1))
    assert {metric.name for metric in names_tokens.TOKENS} == {name for name, _ in whole}
