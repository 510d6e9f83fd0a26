"""Metrics of what requests bring: quality of the input, personal data in it, and what the filter chain did with it."""

from __future__ import annotations

from typing import Final

from exporters.buckets import SHARPNESS_BUCKETS
from exporters.metric import Metric

__all__ = [
    "DEAD_LETTER_RESULTS",
    "DEVICE_TYPES",
    "FILTER_LINKS",
    "INPUTS",
    "MASK_FORMATS",
    "MODALITIES",
    "PII_KINDS",
    "QUALITY_REASONS",
]

# Words of the service (service/text/quality.py, service/filters) and of probes/images; tests hold them together.
MODALITIES: Final = ("text", "image")
QUALITY_REASONS: Final = (
    "empty",
    "replacement",
    "mojibake",
    "markup",
    "base64",
    "repetition",
    "unreadable",
    "size",
    "blank",
    "exposure",
    "blur",
    "other",
)
# As callers say (header x-device-type); the last is for those that do not.
DEVICE_TYPES: Final = ("mobile", "web", "app", "unknown")
PII_KINDS: Final = ("phone", "email", "id_card", "bank_card", "address", "other")
MASK_FORMATS: Final = ("1", "2", "other")
FILTER_LINKS: Final = ("protocol", "schema", "pii", "quality", "other")
DEAD_LETTER_RESULTS: Final = ("handed_over", "no_room")

INPUTS: Final = (
    Metric(
        "model_low_quality_input_total",
        "counter",
        "requests",
        "Requests whose input is of low quality, by kind of input and the first reason found.",
        labels={"modality": MODALITIES, "reason": QUALITY_REASONS},
    ),
    Metric(
        "model_image_sharpness_score",
        "histogram",
        "ratio",
        "Sharpness of photos that could be judged, by kind of device; below 50 a photo is blurred, whatever its size.",
        labels={"device_type": DEVICE_TYPES},
        buckets=SHARPNESS_BUCKETS,
    ),
    Metric(
        "model_pii_masked_total",
        "counter",
        "requests",
        "Requests with personal data of a kind in their text, which was masked before the model; by the mask's format.",
        labels={"kind": PII_KINDS, "mask_format": MASK_FORMATS},
    ),
    Metric(
        "model_filter_failures_total",
        "counter",
        "requests",
        "Requests for which a link of the filter chain failed, or was left out since it had failed.",
        labels={"link": FILTER_LINKS},
    ),
    Metric(
        "model_dead_letters_total",
        "counter",
        "requests",
        "Requests that failed the contract and were handed over to be kept, or for which there was no room.",
        labels={"result": DEAD_LETTER_RESULTS},
    ),
)
