"""The program's deploy makes full-width texts unknown to the model; its twin's new words change no fingerprint."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from inferdeck.drill.program import load_module, read_program
from inferdeck.settings import load_settings
from service.app import load_model
from service.filters.chain import open_chain
from service.recording import NO_RECORD
from service.settings import load_settings as service_settings
from service.text.contract import fits_contract
from service.text.preprocessing import preprocessing_without
from service.text.quality import quality_reason
from service.training.ensure import ensure_model

PROGRAM = Path(__file__).with_name("preprocess_mismatch.py")


@pytest.fixture(scope="module")
def program() -> Any:
    """Load the program as a module."""
    return load_module(PROGRAM)


@pytest.fixture(scope="module")
def folder() -> Path:
    """Return a trained model's folder; a fresh checkout has none yet."""
    place = load_settings().model_path
    ensure_model(place, lambda _what, _share: None)
    return place


def test_texts_are_good_and_pass_the_contract(program: Any) -> None:
    """Refusals and texts of low quality would be other failures."""
    for text in [*map(program.wide, program.REVIEWS), *program.NEW_WORDS]:
        assert fits_contract(text)
        assert quality_reason(text) is None


def test_the_deploy_makes_tokens_unknown(program: Any, folder: Path) -> None:
    """The same texts, cleaned with and without the step."""
    unknown: dict[str, float] = {}
    for left_out in ("", program.STEP):
        settings = service_settings(model_dir=folder, recorder=False, cleaning_without=left_out)
        backend = load_model(settings)
        preprocessing = preprocessing_without(settings.cleaning_without)
        chain = open_chain(
            None,
            letter_bytes=1,
            audit_bytes=1,
            audit_shares={},
            mask_format="1",
            text_form="shape",
            preprocessing=preprocessing,
        )
        bodies = [f'{{"text": "{program.wide(text)}", "product_id": "AB12345678"}}' for text in program.REVIEWS]
        found = [backend.encode(chain.text(body.encode(), NO_RECORD)[0]) for body in bodies]
        unknown[left_out] = sum(one.unknown for one in found) / sum(one.tokens for one in found)
        pair = getattr(backend, "preprocess", None)
        assert pair is not None
        assert pair.match == (left_out == "")
    assert unknown[""] < 0.02
    assert unknown[program.STEP] > 0.3


def test_the_twin_s_words_are_new_to_the_model(program: Any, folder: Path) -> None:
    """Otherwise it would look like nothing."""
    backend = load_model(service_settings(model_dir=folder, recorder=False))
    assert all(backend.encode(text).unknown for text in program.NEW_WORDS if not text.isascii())


def test_it_is_deployed_and_taken_back(program: Any) -> None:
    """By the service's own setting."""
    told: list[dict[str, str]] = []
    with program.cause(SimpleNamespace(deploy_service=told.append)):
        assert [{"INFERDECK_SERVICE_CLEANING_WITHOUT": "fold_width"}] == told
    assert {"INFERDECK_SERVICE_CLEANING_WITHOUT": ""} == told[-1]
    assert {"cause", "twin_cause", "usual"} <= read_program(PROGRAM).hooks


def test_a_service_that_is_gone_is_no_error(program: Any) -> None:
    """The stack may have ended first; no thread is left."""
    for hook in (program.usual, program.twin_cause):
        with hook(SimpleNamespace(service_url="http://127.0.0.1:9")):
            pass
