from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from exporters.drift.reference import ReferenceUnusable, load_reference
from service.training.reference import reference_file


def tokenizer() -> Tokenizer:
    """Three tokens."""
    made = Tokenizer(models.WordLevel({"[PAD]": 0, "[UNK]": 1, "good": 2}, unk_token="[UNK]"))  # noqa: S106
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return made


def test_what_training_writes_is_what_drift_reads(tmp_path: Path) -> None:
    """The columns are those of the rows, the values those that the service would record."""
    path = tmp_path / "reference.npz"
    confidences = np.array([0.5, 0.25])
    path.write_bytes(reference_file(["good bad 12", "好", ""], tokenizer(), confidences, 0))
    found = load_reference(path)
    expected = {
        "input_length": [1.0, 11.0],
        "tokens": [1.0, 3.0],
        "confidence": [0.25, 0.5],
        "sentiment.tokenizer/unknown_ratio": [2 / 3, 1.0],
        "sentiment.preprocess/non_ascii_ratio": [0.0, 1.0],
        "sentiment.preprocess/digit_ratio": [0.0, 2 / 11],
        "sentiment.preprocess/mark_ratio": [0.0, 2 / 11],
    }
    assert expected == {column: values.tolist() for column, values in found.numbers.items()}
    assert {"sentiment.preprocess/language": {"en": 1, "zh": 1}} == found.categories


def test_the_same_training_writes_the_same_bytes() -> None:
    """Seeded, and without a clock in it."""
    texts = [f"good {number}" for number in range(50)]
    made = [reference_file(texts, tokenizer(), np.linspace(0, 1, 9), 3, rows=20) for _ in range(2)]
    assert made[0] == made[1]


def written(tmp_path: Path, **members: Any) -> Path:
    """Write members as they are."""
    path = tmp_path / "reference.npz"
    np.savez(path, **members)
    return path


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"number:tokens": np.array([1.0, np.nan])},
        {"number:tokens": np.array([np.inf])},
        {"number:tokens": np.array([])},
        {"number:tokens": np.array([["a"]])},
        {"words:language": np.array(["en"])},
        {"words:language": np.array(["en"]), "counts:language": np.array([1, 2])},
        {"words:language": np.array(["en"]), "counts:language": np.array([0.5])},
        {"words:language": np.array([["en"]]), "counts:language": np.array([[1]])},
        {f"number:{n}": np.array([1.0]) for n in range(33)},
    ],
)
def test_what_is_no_distribution_is_refused_in_one_line(tmp_path: Path, members: dict[str, Any]) -> None:
    """Empty, NaN, infinite, of the wrong shape or type, too many; each with the mend."""
    with pytest.raises(ReferenceUnusable, match="inferdeck train") as caught:
        load_reference(written(tmp_path, **members))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("body", [b"", b"PK\x03\x04", b"not a zip file", b"\x93NUMPY\x01\x00"])
def test_a_damaged_file_is_refused(tmp_path: Path, body: bytes) -> None:
    """Truncated, foreign, empty."""
    path = tmp_path / "reference.npz"
    path.write_bytes(body)
    with pytest.raises(ReferenceUnusable, match="inferdeck train"):
        load_reference(path)


def test_objects_are_never_unpickled(tmp_path: Path) -> None:
    """A pickle is a program."""
    with pytest.raises(ReferenceUnusable, match="inferdeck train"):
        load_reference(written(tmp_path, **{"number:tokens": np.array([{}], dtype=object)}))


def test_a_file_that_unpacks_to_much_more_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """A few kilobytes that would become 32 MiB."""
    path = tmp_path / "reference.npz"
    body = io.BytesIO()
    np.save(body, np.zeros(4 << 20))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("number:tokens.npy", body.getvalue())
    with pytest.raises(ReferenceUnusable, match="unpacks to"):
        load_reference(path)


def test_flipped_bytes_are_refused_or_read(tmp_path: Path) -> None:
    """Wherever they are: nothing else comes out, of zlib, zipfile or numpy."""
    whole = tmp_path / "whole.npz"
    members: dict[str, Any] = {"number:tokens": np.arange(200.0) ** 0.5}
    np.savez_compressed(whole, **members)
    body, path, said = whole.read_bytes(), tmp_path / "reference.npz", []
    for place in range(len(body)):
        path.write_bytes(body[:place] + bytes([body[place] ^ 0xFF]) + body[place + 1 :])
        try:
            load_reference(path)
        except ReferenceUnusable as error:
            said.append(str(error))
    assert len(said) > len(body) // 2
    assert not [one for one in said if "\n" in one]


@pytest.mark.parametrize("shape", ["(1000000000000000,)", "(99999999,)", "(-1,)"])
def test_a_shape_larger_than_its_bytes_is_refused_before_memory_is_asked_for(tmp_path: Path, shape: str) -> None:
    """A header costs nothing to write."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    path = tmp_path / "reference.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("number:tokens.npy", b"\x93NUMPY\x01\x00v\x00" + header.encode() + bytes(80))
    with pytest.raises(ReferenceUnusable, match="inferdeck train") as caught:
        load_reference(path)
    assert shape == "(-1,)" or "larger than its file" in str(caught.value)


@pytest.mark.parametrize(("offset", "value"), [(8, 1), (10, 99)])
def test_an_encrypted_or_foreign_member_is_refused(tmp_path: Path, offset: int, value: int) -> None:
    """RuntimeError and NotImplementedError of zipfile."""
    path = written(tmp_path, **{"number:tokens": np.arange(9.0)})
    body = bytearray(path.read_bytes())
    body[body.index(b"PK\x01\x02") + offset] = value
    path.write_bytes(body)
    with pytest.raises(ReferenceUnusable, match="inferdeck train"):
        load_reference(path)


def test_no_file_is_told_apart_from_a_bad_one(tmp_path: Path) -> None:
    """It may come later."""
    with pytest.raises(FileNotFoundError):
        load_reference(tmp_path / "reference.npz")
