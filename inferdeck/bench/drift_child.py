"""One peer of `bench drift` in an environment of its own: times its check beside scipy's, prints one JSON object.

Run as a script by the peer's interpreter, which has neither this package nor its dependencies: numpy, scipy, the peer.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from importlib import metadata
from typing import Any

import numpy as np

Check = Callable[[], float | None]


def frouros(reference: Any, window: Any) -> Check:
    """Return a check by frouros' KSTest."""
    from frouros.detectors.data_drift import KSTest  # type: ignore[import-not-found,unused-ignore]

    detector = KSTest()
    detector.fit(X=reference)
    return lambda: float(detector.compare(X=window)[0].statistic)


def alibi_detect(reference: Any, window: Any) -> Check:
    """Return a check by alibi-detect's KSDrift."""
    from alibi_detect.cd import KSDrift  # type: ignore[import-not-found,unused-ignore]

    detector, column = KSDrift(reference.reshape(-1, 1), p_val=0.05), window.reshape(-1, 1)
    return lambda: float(detector.predict(column)["data"]["distance"][0])


def evidently(reference: Any, window: Any) -> Check:
    """Return the report that a user of evidently runs; it tells a p-value and no statistic."""
    import pandas as pd  # type: ignore[import-untyped,import-not-found,unused-ignore]
    from evidently import DataDefinition, Dataset, Report  # type: ignore[import-not-found,unused-ignore]
    from evidently.metrics import ValueDrift  # type: ignore[import-not-found,unused-ignore]

    columns = DataDefinition(numerical_columns=["x"])
    known, live = (
        Dataset.from_pandas(pd.DataFrame({"x": values}), data_definition=columns) for values in (reference, window)
    )
    report = Report([ValueDrift(column="x", method="ks")])

    def check() -> None:
        report.run(live, known).dict()

    return check


def nannyml(reference: Any, window: Any) -> Check:
    """Return a check by NannyML's univariate calculator."""
    import nannyml as nml  # type: ignore[import-not-found,unused-ignore]
    import pandas as pd  # type: ignore[import-untyped,import-not-found,unused-ignore]

    calculator = nml.UnivariateDriftCalculator(["x"], continuous_methods=["kolmogorov_smirnov"], chunk_size=len(window))
    calculator.fit(pd.DataFrame({"x": reference}))
    live = pd.DataFrame({"x": window})
    return lambda: float(calculator.calculate(live).to_df()[("x", "kolmogorov_smirnov", "value")].iloc[-1])


def whylogs(_reference: Any, window: Any) -> Check:
    """Return what whylogs does before any comparison: the window into a profile; it has no statistic by then."""
    import pandas as pd  # type: ignore[import-untyped,import-not-found,unused-ignore]
    from whylogs.core import DatasetProfile  # type: ignore[import-not-found,unused-ignore]

    live = pd.DataFrame({"x": window})

    def check() -> None:
        DatasetProfile().track(live)

    return check


PEERS: dict[str, Callable[[Any, Any], Check]] = {
    "frouros": frouros,
    "alibi-detect": alibi_detect,
    "evidently": evidently,
    "nannyml": nannyml,
    "whylogs": whylogs,
}


def scipy_check(reference: Any, window: Any) -> Check:
    """Return scipy's test."""
    from scipy.stats import ks_2samp

    return lambda: float(ks_2samp(reference, window, method="asymp").statistic)


def timed(check: Check) -> float:
    """Return the seconds of one check."""
    began = time.perf_counter()
    check()
    return time.perf_counter() - began


def main(peer: str, samples: str, rounds: int) -> None:
    """Print what was measured.

    Args:
        peer: A key of PEERS.
        samples: Path of an npz file with `reference` and one `window:<n>` per window.
        rounds: Checks of each kind, in turn; medians are told.
    """
    warnings.filterwarnings("ignore")
    windows: dict[str, Any] = {}
    with np.load(samples, allow_pickle=False) as arrays:
        for name in arrays.files:
            if name.startswith("window:"):
                ours, theirs = (make(arrays["reference"], arrays[name]) for make in (PEERS[peer], scipy_check))
                statistic = ours()
                theirs()
                pairs = [(timed(ours), timed(theirs)) for _ in range(rounds)]
                seconds, scipy_seconds = (statistics.median(column) for column in zip(*pairs, strict=True))
                windows[name.partition(":")[2]] = {"s": seconds, "scipy_s": scipy_seconds, "statistic": statistic}
    print(json.dumps({"version": metadata.version(peer), "windows": windows}))  # noqa: T201 - read by the bench


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
