from __future__ import annotations

import pytest

from service.text.chunks import Chunking
from service.text.clean import FINGERPRINT, clean
from service.text.preprocessing import PREPROCESSING, STEP_NAMES, Preprocessing, preprocessing_without

TEXT = "ＡＢＣ　<b>好</b>\x00 good"


def test_nothing_left_out_is_the_training_s() -> None:
    """One fingerprint and one cleaning."""
    assert preprocessing_without(()).fingerprint == PREPROCESSING.fingerprint
    assert clean(TEXT) == PREPROCESSING.clean(TEXT)
    assert FINGERPRINT == PREPROCESSING.cleaning_fingerprint


def test_each_step_and_the_chunking_are_in_the_fingerprint() -> None:
    """Whatever is left out or cut otherwise is told apart."""
    others = {preprocessing_without([name]).fingerprint for name in STEP_NAMES}
    others |= {Preprocessing(chunking=Chunking(256, 64)).fingerprint, PREPROCESSING.fingerprint}
    assert len(STEP_NAMES) + 2 == len(others)


def test_a_step_left_out_does_nothing_any_more() -> None:
    """Full-width letters stay as they came."""
    assert "ＡＢＣ 好 good" == preprocessing_without(["fold_width"]).clean(TEXT)


def test_a_step_that_is_none_is_named() -> None:
    """A misspelt setting must not clean everything."""
    with pytest.raises(ValueError, match="no cleaning step fold_widths"):
        preprocessing_without(["fold_widths"])
