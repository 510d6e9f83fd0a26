"""The dashboards' JSON is held to Grafana's own types (@grafana/schema from npm, of the version that compose runs)."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dashboards.build import panels_of
from dashboards.catalogue import BOARDS
from dashboards.files import ROOT

HERE = Path(__file__).parent / "grafana_types"
FILES = ("package.json", "prepare.mjs", "shapes.ts", "tsconfig.json")
Document = dict[str, Any]


def documents() -> dict[str, Document]:
    """Return the committed dashboards by uid."""
    folder = ROOT / "dashboards" / "generated"
    return {board.uid: json.loads((folder / f"{board.uid}.json").read_text()) for board in BOARDS}


@pytest.fixture(scope="module")
def workshop() -> Path:
    """Return a folder with TypeScript and Grafana's types, about 26 MB, fetched once into build/."""
    tools = {name: shutil.which(name) for name in ("node", "npm")}
    if not all(tools.values()):
        missing = ", ".join(name for name, path in tools.items() if path is None)
        if os.environ.get("CI") == "true":
            pytest.fail(f"{missing} not found in CI: install nodejs and npm")
        pytest.skip(f"{missing} not found: Grafana's types come from npm")
    digest = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in FILES)).hexdigest()[:12]
    folder = ROOT / "build" / "grafana-types" / digest
    if not (folder / "ready").is_file():
        shutil.rmtree(folder.parent, ignore_errors=True)
        folder.mkdir(parents=True)
        for name in FILES:
            shutil.copy(HERE / name, folder)
        options = ("--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
        install = [str(tools["npm"]), "install", *options]
        done = subprocess.run(install, cwd=folder, capture_output=True, text=True, timeout=180, check=False)
        if done.returncode:
            if os.environ.get("CI") == "true":
                pytest.fail(f"npm could not fetch Grafana's types: {done.stderr[-400:]}")
            pytest.skip(f"npm could not fetch Grafana's types: {done.stderr[-200:]}")
        subprocess.run([str(tools["node"]), "prepare.mjs", "."], cwd=folder, timeout=60, check=True)
        (folder / "ready").touch()
    return folder


def judge(folder: Path, boards: dict[str, Document]) -> dict[str, str]:
    """Return what the compiler says first about each board; nothing about one that is well.

    Args:
        folder: With the compiler and the types.
        boards: By a name that is good for a file.
    """
    shutil.rmtree(folder / "boards", ignore_errors=True)
    (folder / "boards").mkdir()
    for name, document in boards.items():
        # Written as a literal of that type: then a key that the type does not know is an error too.
        literal = json.dumps(document, indent=1)
        text = f"import type {{ Board }} from '../shapes';\nexport const board: Board = {literal};\n"
        (folder / "boards" / f"{name}.ts").write_text(text)
    compiler = [str(folder / "node_modules" / ".bin" / "tsc"), "-p", "."]
    done = subprocess.run(compiler, cwd=folder, capture_output=True, text=True, timeout=200, check=False)
    found: dict[str, str] = {}
    for line in done.stdout.splitlines():
        if match := re.match(r"(?:boards/)?([\w-]+)\.ts\(\d+,\d+\): error (.*)", line):
            found.setdefault(match[1], match[2])
    assert bool(found) == bool(done.returncode), done.stdout
    return found


def first(document: Document, kind: str) -> dict[str, Any]:
    """Return the first panel of a kind."""
    return next(panel for panel in panels_of(document) if panel["type"] == kind)


MUTATIONS: dict[str, Callable[[Document], Any]] = {
    "uid-is-a-number": lambda d: d.update(uid=7),
    "unknown-key-of-the-board": lambda d: d.update(titel="x"),
    "cursor-out-of-range": lambda d: d.update(graphTooltip=9),
    "kind-of-panel": lambda d: first(d, "timeseries").update(type="timeserie"),
    "target-for-targets": lambda d: first(d, "stat").update(target=first(d, "stat").pop("targets")),
    "place-without-width": lambda d: first(d, "stat")["gridPos"].pop("w"),
    "source-as-a-text": lambda d: first(d, "stat").update(datasource="prometheus"),
    "exemplar-as-a-text": lambda d: first(d, "timeseries")["targets"][0].update(exemplar="yes"),
    "misspelt-exemplar": lambda d: first(d, "timeseries")["targets"][0].update(exempler=True),
    "mode-of-thresholds": lambda d: first(d, "stat")["fieldConfig"]["defaults"]["thresholds"].update(mode="absolut"),
    "placement-of-a-legend": lambda d: first(d, "timeseries")["options"]["legend"].update(placement="below"),
    "style-of-lines": lambda d: first(d, "timeseries")["fieldConfig"]["defaults"]["custom"].update(lineWidth="thin"),
    "mode-of-colours": lambda d: first(d, "stat")["options"].update(colorMode="background_color"),
    "decimals-as-a-text": lambda d: first(d, "stat")["fieldConfig"]["defaults"].update(decimals="1"),
    "kind-of-variable": lambda d: d["templating"]["list"][0].update(type="datasources"),
    "refresh-of-a-variable": lambda d: d["templating"]["list"][1].update(refresh="always"),
    "annotation-without-source": lambda d: d["annotations"]["list"][1].pop("datasource"),
    "kind-of-link": lambda d: d["links"][0].update(type="dashboard"),
}


@pytest.mark.real
def test_the_dashboards_have_grafanas_shape_and_what_has_not_is_seen(workshop: Path) -> None:
    """The compiler has nothing against the committed dashboards, and something against each broken copy."""
    good = documents()
    broken = {}
    for name, change in MUTATIONS.items():
        broken[name] = copy.deepcopy(good["inferdeck-overview"])
        change(broken[name])

    found = judge(workshop, good | broken)

    assert {} == {name: what for name, what in found.items() if name not in broken}
    assert set(broken) == set(found)
