"""Looks at a bundle again: today's runbooks over the rows and series of then."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from inferdeck.bundle.container import unpack
from inferdeck.bundle.metrics import KeptMetrics
from inferdeck.drill.evidence import hold_alive, read_json
from inferdeck.errors import CannotRun

__all__ = ["opened", "replay_bundle", "replay_folder"]


@contextmanager
def opened(path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Unpack a bundle for a while.

    Args:
        path: The file.

    Yields:
        The folder and the manifest.

    Raises:
        CannotRun: If it is no bundle that may be used.
    """
    with tempfile.TemporaryDirectory(prefix="inferdeck-bundle-") as scratch:
        folder = Path(scratch)
        yield folder, unpack(path, folder)


def replay_bundle(path: Path) -> dict[str, Any]:
    """Return what triage says about a bundle, in the shape of `triage`, with `replay`: what the kept report said.

    Args:
        path: The file.

    Raises:
        CannotRun: If it is no bundle that may be used.
    """
    with opened(path) as (folder, manifest):
        answer = replay_folder(folder, manifest)
        try:
            then = read_json(folder / "report.json")
        except RecursionError as error:
            raise CannotRun(f"{path} is refused: its report is no report", "make it anew") from error
        verdict = then.get("verdict") if isinstance(then, dict) else None
        named = _plain(verdict.get("slug") if isinstance(verdict, dict) else None)
        same = answer["verdict"]["slug"] == named
        return answer | {"replay": {"report": _plain(manifest.get("report")), "verdict": named, "same": same}}


def replay_folder(folder: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Run triage over an unpacked bundle.

    Args:
        folder: Its folder.
        manifest: Its manifest.

    Raises:
        CannotRun: If the manifest lacks what is needed.
    """
    from runbooks.engine import triage
    from runbooks.row_source import RowSource
    from runbooks.sources import Sources

    try:
        since, until = (_unix(manifest["window"][key]) for key in ("from", "to"))
        alert, asked = _plain(manifest["alert"]), float(manifest["asked_unix"])
        alive = {str(name): bool(lives) for name, lives in manifest["rings_alive"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CannotRun(f"the bundle's manifest lacks {error}", "make it anew with `inferdeck bundle`") from error
    rings = folder / "rings"
    # only copies that are there: a manifest may name anything
    alive = {name: lives for name, lives in alive.items() if "/" not in name and (rings / name).is_file()}
    sources = Sources(KeptMetrics(folder / "metrics.json"), RowSource(rings) if rings.is_dir() else None)
    # the clock stands where it stood: ages of heartbeats and last signs are told from then
    with hold_alive(rings, alive):
        return triage(sources, alert=alert, window=(since, until), clock=lambda: asked)


def _plain(text: object) -> str | None:
    """Return a name as it is, None for whatever else a file from elsewhere may hold: it goes to a terminal."""
    return text if isinstance(text, str) and re.fullmatch(r"[A-Za-z0-9_:.-]{1,100}", text) else None


def _unix(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
