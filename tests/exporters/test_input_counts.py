"""What the filter chain told of requests is counted by closed sets of words."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from exporters.input_counts import count_inputs
from exporters.names_inputs import FILTER_LINKS, MASK_FORMATS, PII_KINDS, QUALITY_REASONS
from exporters.totals import Totals
from service.filters.link import LINKS
from service.filters.masking import KINDS
from service.filters.masking import MASK_FORMATS as SERVICE_FORMATS
from service.text.quality import REASONS

STRINGS = ["", "text", "markup", "phone", "phone,email", "1", "2", "pii", "handed_over", "no_room", "new word"]
COLUMNS = ("quality_reason", "quality_modality", "pii_kinds", "pii_mask_format", "filter_failed", "dead_letter")


def counted(*rows: Mapping[str, int], columns: tuple[str, ...] = COLUMNS) -> dict[tuple[str, ...], int]:
    """Return what rows of these string ids add, by metric and labels."""
    array = np.zeros(len(rows), dtype=[(f"request/{name}", "u4") for name in columns])
    for place, row in enumerate(rows):
        for name, value in row.items():
            array[place][f"request/{name}"] = value
    totals = Totals()
    count_inputs(array, STRINGS, totals)
    return {(name, *labels): n for name, series in totals.counters.items() for labels, n in series.items()}


def test_each_kind_of_personal_data_counts_the_request_once_by_its_format() -> None:
    """Two kinds in one text are two counts; formats stay apart."""
    one, both = {"pii_kinds": 3, "pii_mask_format": 5}, {"pii_kinds": 4, "pii_mask_format": 6}

    expected = {
        ("model_pii_masked_total", "phone", "1"): 2,
        ("model_pii_masked_total", "phone", "2"): 1,
        ("model_pii_masked_total", "email", "2"): 1,
    }
    assert expected == counted(one, both, {}, one)


def test_low_quality_is_counted_by_modality_and_reason() -> None:
    """Without a modality it is a text."""
    rows: tuple[dict[str, int], ...] = ({"quality_reason": 2, "quality_modality": 1}, {"quality_reason": 2}, {})

    assert {("model_low_quality_input_total", "text", "markup"): 2} == counted(*rows)


@pytest.mark.parametrize("index", [10, 4_000_000_000])
def test_words_that_are_not_in_the_set_and_damaged_ids_are_other(index: int) -> None:
    """Cardinality stays bounded, and no id is taken for a place in an array."""
    found = counted({"quality_reason": index, "pii_kinds": index, "pii_mask_format": index, "filter_failed": index})

    assert {
        ("model_low_quality_input_total", "text", "other"): 1,
        ("model_pii_masked_total", "other", "other"): 1,
        ("model_filter_failures_total", "other"): 1,
    } == found


def test_failing_links_and_dead_letters_are_counted() -> None:
    """Each by its own word."""
    rows = ({"filter_failed": 7, "dead_letter": 8}, {"dead_letter": 9})

    assert {
        ("model_filter_failures_total", "pii"): 1,
        ("model_dead_letters_total", "handed_over"): 1,
        ("model_dead_letters_total", "no_room"): 1,
    } == counted(*rows)


def test_an_app_without_the_chain_adds_nothing() -> None:
    """Its rows have no such columns."""
    assert {} == counted({}, columns=("other_things",))


def test_the_sets_are_the_service_s_words() -> None:
    """Two packages that may not import each other agree."""
    assert set(REASONS) <= set(QUALITY_REASONS)
    assert (*KINDS, "other") == PII_KINDS
    assert (*SERVICE_FORMATS, "other") == MASK_FORMATS
    assert (*LINKS, "other") == FILTER_LINKS
