"""Length classes of whole columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["bucket_index"]


def bucket_index(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return each input length's index into `INPUT_BUCKETS` (the vector form of `names.input_bucket`)."""
    return np.select([lengths < 0, lengths < 100, lengths <= 500], [3, 0, 1], default=2)
