"""Write the generated files, or compare them with what is committed."""

from __future__ import annotations

import argparse
import difflib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from alerts.generate import Inputs, generate
from alerts.grafana.files import FOLDER_OF_FILES, grafana_files
from alerts.load import CatalogueError, load_catalogue
from alerts.panels import read_panels
from alerts.readme import related_files
from alerts.recording import load_recordings

__all__ = ["GENERATED", "differences", "expected_files", "main", "untracked", "write"]

ROOT = Path(__file__).resolve().parent.parent
# Where generated files live; one that no catalogue file asks for any more is a leftover.
GENERATED = ("alerts/rules/*.yml", "alerts/tests/*.test.yml", f"{FOLDER_OF_FILES}/*.yaml")
_GIT_TIMEOUT_SECONDS = 30.0


def expected_files(root: Path = ROOT) -> dict[str, str]:
    """Return what the generated files must hold, by path below *root*.

    Args:
        root: The checkout.

    Raises:
        CatalogueError: When the catalogue below *root* is broken.
    """
    alerts = load_catalogue(root / "alerts" / "catalogue")
    related = {path for alert in alerts for path in related_files(alert).values()}
    there = {path for path in related if (root / path).is_file()}
    recordings = load_recordings(root / "alerts" / "recording")
    files = generate(Inputs(alerts, there, recordings=recordings, panels=read_panels(root)))
    return dict(sorted((files | grafana_files(alerts, root)).items()))


def leftovers(root: Path, expected: Mapping[str, str]) -> list[str]:
    """Return generated files below *root* that the catalogue does not ask for, in alphabetical order."""
    there = {str(path.relative_to(root)) for pattern in GENERATED for path in root.glob(pattern)}
    return sorted(there - expected.keys())


def write(root: Path = ROOT) -> list[str]:
    """Write what differs, remove leftovers, and return the changed paths.

    Args:
        root: The checkout.

    Raises:
        CatalogueError: When the catalogue is broken; nothing is written then.
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
        CatalogueError: When the catalogue is broken.
    """
    expected = expected_files(root)
    wanted: dict[str, str] = {**expected, **dict.fromkeys(leftovers(root, expected), "")}
    parts: list[str] = []
    for name, text in sorted(wanted.items()):
        path = root / name
        present = path.read_text(encoding="utf-8") if path.is_file() else ""
        parts += difflib.unified_diff(
            present.splitlines(keepends=True), text.splitlines(keepends=True), name, f"{name} (from the catalogue)"
        )
    return "".join(parts)


def untracked(root: Path = ROOT) -> list[str] | None:
    """Return the generated files that git does not track, or None when *root* is no git checkout.

    A comparison with files that git ignores could never fail on a clean clone.

    Args:
        root: The checkout.
    """
    try:
        done = subprocess.run(
            ["git", "ls-files", "-z", "--", "alerts"],  # noqa: S607  # git is looked up on PATH on purpose
            cwd=root,
            capture_output=True,
            text=True,
            timeout=_GIT_TIMEOUT_SECONDS,
            check=False,
        )
    except OSError:
        return None
    if done.returncode != 0:
        return None
    return sorted(expected_files(root).keys() - set(done.stdout.split("\0")))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `python -m alerts [--check] [--root FOLDER]`.

    Args:
        arguments: Without the program's name; those of the process by default.

    Returns:
        0 done or current, 1 when a comparison found a difference, 2 when the catalogue is broken.
    """
    parser = argparse.ArgumentParser("python -m alerts", description="Write what follows from alerts/catalogue.")
    parser.add_argument(
        "--check", action="store_true", help="change nothing; fail with a diff when a file is not current"
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout (default: the one this program is in)")
    options = parser.parse_args(arguments)
    try:
        if not options.check:
            changed = write(options.root)
            sys.stdout.write("".join(f"wrote {name}\n" for name in changed) or "all current\n")
            return 0
        lost = untracked(options.root)
        diff = differences(options.root)
    except CatalogueError as error:
        sys.stderr.write(f"alerts: {error}\n")
        return 2
    if lost is None:
        sys.stderr.write("alerts: this is no git checkout, so it cannot be told whether the files are tracked\n")
    elif lost:
        sys.stderr.write(f"alerts: not tracked by git: {', '.join(lost)}: git add them\n")
    if diff:
        sys.stdout.write(diff)
        sys.stderr.write("alerts: generated files are not current: run `python -m alerts` and commit\n")
    return 1 if lost or diff else 0
