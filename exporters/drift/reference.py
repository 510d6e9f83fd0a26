"""The training set's distributions on disk: `reference.npz`, one array per feature; read without trusting it.

Members   `number:<column>`: float64, what the column of a row had over the training set; `words:<column>` (texts) with
          `counts:<column>`: how often each word of a text column came. Columns are those of docs/architecture.md.
Bounded   32 features, 16 MiB unpacked.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["MOST_FEATURES", "Reference", "ReferenceUnusable", "load_reference"]

MOST_FEATURES: Final = 32
_MOST_BYTES: Final = 16 << 20
_MEND: Final = "run `inferdeck train`"


class ReferenceUnusable(ValueError):  # noqa: N818 - says what is wrong, as its siblings do
    """The file cannot be used; the message is one line and names the mend."""


@dataclass(frozen=True)
class Reference:
    """What inputs looked like in training.

    Attributes:
        numbers: Column -> values, finite.
        categories: Column -> word -> count.
    """

    numbers: Mapping[str, npt.NDArray[np.float64]] = field(default_factory=dict)
    categories: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def load_reference(path: Path) -> Reference:
    """Return the reference in a file.

    Args:
        path: A `reference.npz`.

    Raises:
        FileNotFoundError: If there is none.
        ReferenceUnusable: If it cannot be read, is too large, or holds what is no distribution.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(info.file_size for info in archive.infolist())
            if unpacked > _MOST_BYTES:
                raise ReferenceUnusable(f"{path} unpacks to {unpacked} bytes, over {_MOST_BYTES}; {_MEND}")
            for info in archive.infolist():
                _refuse_more_than_it_holds(archive, info)
        with np.load(path, allow_pickle=False) as members:
            arrays = {name: members[name] for name in members.files}
    except (FileNotFoundError, ReferenceUnusable):
        raise
    # Flipped bytes come out of zlib, zipfile and numpy as errors of many kinds, and none may stop who reads.
    except Exception as error:
        detail = " ".join(str(error).split())[:120]
        raise ReferenceUnusable(f"{path} is no reference of a training ({detail}); {_MEND}") from error
    return _checked(path, arrays)


def _refuse_more_than_it_holds(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
    """Refuse a member whose shape asks for more memory than it has bytes, before numpy asks for it."""
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        if version == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(member)
        elif version == (2, 0):
            shape, _, dtype = np.lib.format.read_array_header_2_0(member)
        else:
            raise ValueError(f"an array of format {version}")
    if math.prod(shape) * max(1, dtype.itemsize) > info.file_size:
        raise ValueError("an array says that it is larger than its file")


def _checked(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> Reference:
    numbers: dict[str, npt.NDArray[np.float64]] = {}
    categories: dict[str, dict[str, int]] = {}
    for name, array in arrays.items():
        kind, _, column = name.partition(":")
        if kind == "number":
            if array.ndim != 1 or array.dtype.kind not in "fiu" or not array.size or not np.isfinite(array).all():
                raise ReferenceUnusable(f"{path}: {column} is no list of finite numbers; {_MEND}")
            numbers[column] = array.astype(np.float64)
        elif kind == "words":
            counts = arrays.get(f"counts:{column}")
            if (
                counts is None
                or array.ndim != 1
                or counts.shape != array.shape
                or counts.dtype.kind not in "iu"
                or array.dtype.kind != "U"
            ):
                raise ReferenceUnusable(f"{path}: {column} is no table of words and counts; {_MEND}")
            categories[column] = dict(zip(array.tolist(), counts.tolist(), strict=True))
    if not 0 < len(numbers) + len(categories) <= MOST_FEATURES:
        raise ReferenceUnusable(
            f"{path} holds {len(numbers) + len(categories)} features, not 1..{MOST_FEATURES}; {_MEND}"
        )
    return Reference(numbers, categories)
