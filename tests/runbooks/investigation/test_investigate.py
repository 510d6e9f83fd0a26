"""The investigation names the slice that changed, since when; and nothing where nothing changed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from exporters.drift.reference import Reference
from exporters.feature_records import FeatureRecords
from runbooks.investigation.investigate import investigate
from tests.runbooks.investigation.traffic import START, after, of_word, traffic, training, with_word

HOUR = 3600.0
Planted = tuple[FeatureRecords, str, str | None]


def fullwidth(records: FeatureRecords) -> Planted:
    """Plant fullwidth."""
    chosen = of_word(records, "client_release", "5.0") & after(records, 14)
    records.numbers["non_ascii_ratio"][chosen] = 1.0
    records.numbers["mark_ratio"][chosen] = 0.0
    return records, "client_release", "5.0"


def web_texts_cut_off(records: FeatureRecords) -> Planted:
    """Plant web texts cut off."""
    chosen = of_word(records, "device_type", "web") & after(records, 9)
    records.numbers["input_length"][chosen] = np.minimum(records.numbers["input_length"][chosen], 40)
    return records, "device_type", "web"


def an_agent_writes_numbers(records: FeatureRecords) -> Planted:
    """Plant an agent writes numbers."""
    chosen = of_word(records, "agent_family", "python") & after(records, 18)
    records.numbers["digit_ratio"][chosen] += 0.4
    return records, "agent_family", "python"


def unknown_words_in_chinese(records: FeatureRecords) -> Planted:
    """Plant unknown words in chinese."""
    chosen = of_word(records, "language", "zh") & after(records, 6)
    records.numbers["unknown_ratio"][chosen] += 0.2
    return records, "language", "zh"


def a_product_line_of_lists(records: FeatureRecords) -> Planted:
    """Plant a product line of lists."""
    chosen = of_word(records, "product_line", "phones") & after(records, 12)
    records.numbers["mark_ratio"][chosen] += 0.3
    return records, "product_line", "phones"


def a_release_that_is_new(records: FeatureRecords) -> Planted:
    """Plant a release that is new."""
    rng = np.random.default_rng(5)
    chosen = (rng.random(len(records)) < 0.15) & after(records, 16)
    records.numbers["mark_ratio"][chosen] += 0.4
    return with_word(records, "client_release", "6.0", chosen), "client_release", "6.0"


def a_model_less_sure_everywhere(records: FeatureRecords) -> Planted:
    """Plant a model less sure everywhere."""
    chosen = after(records, 11)
    records.numbers["confidence"][chosen] *= 0.7
    return records, "all", None


def a_small_release(records: FeatureRecords) -> Planted:
    """Plant a small release."""
    chosen = of_word(records, "client_release", "5.7") & after(records, 20)
    records.numbers["tokens"][chosen] *= 6
    return records, "client_release", "5.7"


def doubled_texts_of_the_app(records: FeatureRecords) -> Planted:
    """Plant doubled texts of the app."""
    chosen = of_word(records, "device_type", "app") & after(records, 4)
    records.numbers["tokens"][chosen] *= 3
    return records, "device_type", "app"


def unsure_of_long_texts(records: FeatureRecords) -> Planted:
    """Plant unsure of long texts."""
    chosen = of_word(records, "input_bucket", "medium") & after(records, 15)
    records.numbers["confidence"][chosen] -= 0.3
    return records, "input_bucket", "medium"


def one_hour_of_a_batch_job(records: FeatureRecords) -> Planted:
    """Plant one hour of a batch job."""
    hour = int((records.at[0] // 3600 + 5) % 24)
    chosen = of_word(records, "hour", f"{hour:02d}")
    records.numbers["input_length"][chosen] = 400
    return records, "hour", f"{hour:02d}"


PLANTED: tuple[Callable[[FeatureRecords], Planted], ...] = (
    fullwidth,
    web_texts_cut_off,
    an_agent_writes_numbers,
    unknown_words_in_chinese,
    a_product_line_of_lists,
    a_release_that_is_new,
    a_model_less_sure_everywhere,
    a_small_release,
    doubled_texts_of_the_app,
    unsure_of_long_texts,
    one_hour_of_a_batch_job,
)


def right(plant: Callable[[FeatureRecords], Planted], seed: int) -> bool:
    """Return whether the planted slice is the one that is named."""
    records, dimension, value = plant(traffic(seed))
    verdict = investigate(records, training(99))["verdict"]
    return (verdict["dimension"], verdict["value"]) == (dimension, value)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_planted_drifts_are_attributed(seed: int) -> None:
    """Of eleven kinds of planted drift the slice is right in at least ten, whatever the traffic."""
    wrong = [plant.__name__ for plant in PLANTED if not right(plant, seed)]

    assert len(wrong) <= 1, wrong


@pytest.mark.parametrize("seed", range(5))
def test_quiet_traffic_names_nothing(seed: int) -> None:
    """Where nothing happens, nothing is named, however many slices are looked at."""
    assert "nothing" == investigate(traffic(seed), training(99))["verdict"]["kind"]


def test_the_time_is_found() -> None:
    """The change is dated within a few minutes on a day's window."""
    records, _, _ = fullwidth(traffic(7))

    since = investigate(records, None)["verdict"]["since_unix"]

    assert abs(since - (START + 14 * HOUR)) < 1200


def test_a_mix_is_no_change_of_a_slice() -> None:
    """More phones with their shorter texts, as on a weekend: shares moved, no slice changed."""
    records = traffic(3)
    records.numbers["input_length"][of_word(records, "device_type", "mobile")] *= 0.3
    rng = np.random.default_rng(4)
    late = after(records, 12)
    keep = ~late | of_word(records, "device_type", "mobile") | (rng.random(len(records)) < 0.2)
    thinned = FeatureRecords(
        records.at[keep],
        {name: values[keep] for name, values in records.numbers.items()},
        {name: type(codes)(codes.places[keep], codes.words) for name, codes in records.words.items()},
    )

    found = investigate(thinned, None)

    assert ("mix", "device_type") == (found["verdict"]["kind"], found["verdict"]["dimension"])
    assert "mobile" in found["mix"]["moved"]


def test_what_never_was_as_in_training_stands() -> None:
    """A difference that is older than the window is told as one, without a time."""
    records = traffic(6)
    records.numbers["non_ascii_ratio"][of_word(records, "client_release", "5.1")] = 0.5

    verdict = investigate(records, training(99))["verdict"]

    assert ("standing", "client_release", "5.1") == (verdict["kind"], verdict["dimension"], verdict["value"])
    assert verdict["since_unix"] is None


def test_a_deploy_at_that_time_is_joined() -> None:
    """A build and a model version first seen at the change are told beside it."""
    records, _, _ = a_model_less_sure_everywhere(traffic(8))
    records = with_word(records, "model_version", "v2", after(records, 11))
    records = with_word(records, "build", "b2", after(records, 11.05))

    found = investigate(records, None)

    told = {(one["what"], one["value"]) for one in found["changes"]}
    assert {("model_version", "v2"), ("build", "b2")} <= told


@pytest.mark.parametrize("count", [0, 1, 30])
def test_few_records_name_nothing(count: int) -> None:
    """Too few records for any comparison end in nothing, not in an error."""
    found = investigate(traffic(1, count), training(99))

    assert (count, "nothing") == (found["records"], found["verdict"]["kind"])


def test_absent_numbers_are_no_values() -> None:
    """A feature that no record has is left out; one that half of them lack is judged by the others."""
    records = traffic(2)
    records.numbers["unknown_ratio"][:] = np.nan
    records.numbers["confidence"][::2] = np.nan

    found = investigate(records, Reference())

    features = {one["feature"]: one["records"] for one in found["features"]}
    assert "unknown_ratio" not in features
    assert len(records) // 2 == features["confidence"]
    assert "nothing" == found["verdict"]["kind"]
