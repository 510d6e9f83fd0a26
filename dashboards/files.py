"""Write the generated files, or compare them with what is there."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dashboards.build import build_board, to_text
from dashboards.catalogue import BOARDS
from dashboards.provisioning import Addresses, datasources, jaeger_ui, provider, render_yaml
from dashboards.spec import Board, by_key
from dashboards.thresholds import load_alerts

__all__ = ["ROOT", "differences", "expected_files", "leftovers", "write"]

ROOT: Final = Path(__file__).resolve().parent.parent
_GENERATED: Final = "dashboards/generated/*.json"


def expected_files(root: Path = ROOT, boards: Sequence[Board] = BOARDS) -> dict[str, str]:
    """Return what the generated files must hold, by path below *root*.

    Args:
        root: The checkout, whose alert catalogue is read.
        boards: The dashboards.

    Raises:
        ValueError: If a board or the catalogue is wrong.
    """
    alerts = load_alerts(root / "alerts" / "catalogue")
    index = {
        key: {"uid": board.uid, "id": panel.id, "title": panel.title}
        for key, (board, panel) in by_key(tuple(boards)).items()
    }
    files = {f"dashboards/generated/{board.uid}.json": to_text(build_board(board, alerts)) for board in boards}
    files["dashboards/panels.json"] = to_text(index)
    files["dashboards/provisioning/datasources/inferdeck.yaml"] = render_yaml(datasources(Addresses()))
    files["dashboards/provisioning/dashboards/inferdeck.yaml"] = render_yaml(provider())
    files["dashboards/provisioning/jaeger-ui.json"] = to_text(jaeger_ui(boards))
    return dict(sorted(files.items()))


def leftovers(root: Path, expected: dict[str, str]) -> list[str]:
    """Return generated files below *root* that no board asks for, in alphabetical order."""
    return sorted({str(path.relative_to(root)) for path in root.glob(_GENERATED)} - expected.keys())


def write(root: Path = ROOT) -> list[str]:
    """Write what differs, remove leftovers, and return the changed paths.

    Args:
        root: The checkout.

    Raises:
        ValueError: If a board or the catalogue is wrong; nothing is written then.
    """
    expected = expected_files(root)
    changed = []
    for name, text in expected.items():
        path = root / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
            changed.append(name)
    for name in leftovers(root, expected):
        (root / name).unlink()
        changed.append(name)
    return changed


def differences(root: Path = ROOT) -> str:
    """Return a unified diff from what is there to what should be; empty when all is current.

    Args:
        root: The checkout.

    Raises:
        ValueError: If a board or the catalogue is wrong.
    """
    expected = expected_files(root)
    wanted = {**expected, **dict.fromkeys(leftovers(root, expected), "")}
    parts: list[str] = []
    for name, text in sorted(wanted.items()):
        path = root / name
        present = path.read_text(encoding="utf-8") if path.is_file() else ""
        parts += difflib.unified_diff(
            present.splitlines(keepends=True), text.splitlines(keepends=True), name, f"{name} (from the boards)"
        )
    return "".join(parts)
