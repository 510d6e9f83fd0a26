"""`inferdeck bench drift`: what one check for drift costs, beside scipy and the packages that people use for it."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from exporters.drift.ks import StreamKS
from inferdeck.bench.drift_peers import PEERS, install_peer, measure_peer
from inferdeck.bench.machine import describe, versions
from inferdeck.errors import CannotRun

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["GATES", "Measured", "draw_drift", "measure_window", "run_drift", "samples", "shape_drift"]

REFERENCE: Final = 10_000
GATES: Final = {1_000: 15.0, 10_000: 50.0}
"""Window -> least speed-up over scipy.stats.ks_2samp(method="asymp")."""
_BATCH: Final = 100
# a check of ours is too short to be timed alone
_REPEATS: Final = 20

Floats = npt.NDArray[np.float64]
Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Measured:
    """One window.

    Attributes:
        ours_s: Seconds of a check of ours.
        batch_s: Seconds in which the window takes 100 new observations.
        scipy_s: Seconds of scipy's test.
        statistic: Ours.
        scipy_statistic: Scipy's.
        nbytes: Bytes that we hold.
    """

    ours_s: float
    batch_s: float
    scipy_s: float
    statistic: float
    scipy_statistic: float
    nbytes: int


def samples(seed: int = 7) -> tuple[Floats, dict[int, Floats]]:
    """Return a reference and a slightly different window of each size, without ties."""
    rng = np.random.default_rng(seed)
    return rng.normal(0.0, 1.0, REFERENCE), {size: rng.normal(0.05, 1.05, size) for size in GATES}


def measure_window(reference: Floats, window: Floats, rounds: int) -> Measured:
    """Time ours and scipy's check of a full window in turn, in this process.

    Args:
        reference: The reference.
        window: The window.
        rounds: Rounds; medians are told.

    Raises:
        CannotRun: If scipy is missing.
    """
    try:
        from scipy.stats import ks_2samp
    except ImportError as error:
        raise CannotRun("scipy is missing", "pip install 'inferdeck[train]'") from error
    ours = StreamKS(reference, len(window))
    ours.extend(window)
    filler = StreamKS(reference, len(window))
    filler.extend(window)
    statistic, theirs = ours.statistic() or 0.0, float(ks_2samp(reference, window, method="asymp").statistic)
    rows = [
        (
            _seconds(ours.statistic, _REPEATS),
            _seconds(lambda: filler.extend(window[:_BATCH]), _REPEATS),
            _seconds(lambda: ks_2samp(reference, window, method="asymp"), 2),
        )
        for _ in range(rounds)
    ]
    ours_s, batch_s, scipy_s = (statistics.median(column) for column in zip(*rows, strict=True))
    return Measured(ours_s, batch_s, scipy_s, statistic, theirs, ours.nbytes)


def _seconds(action: Callable[[], object], repeats: int) -> float:
    began = time.perf_counter()
    for _ in range(repeats):
        action()
    return (time.perf_counter() - began) / repeats


def run_drift(folder: Path, rounds: int, peers: Sequence[str], *, install: bool, progress: Progress) -> dict[str, Any]:
    """Measure ours, scipy and the peers.

    Args:
        folder: Holds the peers' environments.
        rounds: Checks of each kind.
        peers: Keys of PEERS.
        install: Whether peers that are not there are installed.
        progress: Told what is done and the share.

    Raises:
        CannotRun: If scipy is missing or a peer is unknown.
    """
    unknown = set(peers) - set(PEERS)
    if unknown:
        raise CannotRun(f"unknown peers: {', '.join(sorted(unknown))}", f"one of {', '.join(PEERS)}")
    reference, windows = samples()
    progress("ours and scipy", 0.0)
    measured = {size: measure_window(reference, window, rounds) for size, window in windows.items()}
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="inferdeck-bench-") as scratch:
        file = Path(scratch) / "samples.npz"
        members: dict[str, Any] = {f"window:{size}": window for size, window in windows.items()}
        np.savez(file, reference=reference, **members)
        for number, name in enumerate(peers):
            progress(name, (number + 1) / (len(peers) + 1))
            failed = install_peer(folder, name) if install else None
            found[name] = (
                {"windows": {}, "reason": failed} if failed else measure_peer(folder, name, file, max(3, rounds // 3))
            )
    return shape_drift(measured, found)


def shape_drift(measured: dict[int, Measured], peers: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the result.

    Args:
        measured: Window -> what was measured here.
        peers: Peer -> what its process measured. Its ratio to ours goes by scipy, which both processes timed.
    """
    shaped: dict[str, Any] = {}
    for size, one in measured.items():
        speedup = one.scipy_s / one.ours_s
        shaped[str(size)] = {
            "ours_s": one.ours_s,
            "batch_of_100_s": one.batch_s,
            "scipy_s": one.scipy_s,
            "speedup": round(speedup, 1),
            "peers": {name: _peer(peer, str(size), speedup) for name, peer in peers.items()},
        }
    equal = all(one.statistic == one.scipy_statistic for one in measured.values())
    fast = all(shaped[str(size)]["speedup"] >= least for size, least in GATES.items() if size in measured)
    return {
        "windows": shaped,
        "statistic_equal": equal,
        "bytes": max(one.nbytes for one in measured.values()),
        "reference": REFERENCE,
        "gate": {"speedup_min": {str(size): least for size, least in GATES.items()}, "passed": equal and fast},
        "machine": describe(),
        "versions": versions(),
    }


def _peer(peer: dict[str, Any], size: str, speedup: float) -> dict[str, Any]:
    found = peer["windows"].get(size)
    if found is None:
        return {"s": None, "reason": peer.get("reason", "not measured")}
    return {
        "s": found["s"],
        "of_scipy": round(found["s"] / found["scipy_s"], 2),
        "speedup": round(speedup * found["s"] / found["scipy_s"], 1),
        "statistic": found["statistic"],
        "version": peer["version"],
    }


def draw_drift(result: dict[str, Any], console: Console) -> None:
    """Print a line per window and peer."""
    for size, one in result["windows"].items():
        console.print(
            f"window {size}: ours {one['ours_s'] * 1e6:.0f} us "
            f"(100 more observations {one['batch_of_100_s'] * 1e6:.0f} us), "
            f"scipy {one['scipy_s'] * 1e6:.0f} us, {one['speedup']:.0f} times faster"
        )
        for name, peer in one["peers"].items():
            told = (
                peer["reason"]
                if peer["s"] is None
                else f"{peer['s'] * 1e6:.0f} us, ours {peer['speedup']:.0f} times faster ({peer['version']})"
            )
            console.print(f"  {name}: {told}")
    word = "equal to scipy's" if result["statistic_equal"] else "NOT scipy's"
    console.print(f"statistic {word}; {result['bytes']:,} bytes, whatever comes")
    console.print(f"gate {'met' if result['gate']['passed'] else 'MISSED'}")
