"""Renders deploy/k8s as a cluster would get it, by kustomize from its Go module."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

HERE = Path(__file__).resolve().parent
K8S = HERE.parents[1] / "deploy" / "k8s"
FOLDERS = ("base", *(f"overlays/{path.name}" for path in sorted((K8S / "overlays").iterdir())))
# A fresh machine downloads and compiles kustomize first: a minute of CPU.
BUILD_SECONDS = 220

Document = dict[str, Any]


def need_go() -> str:
    """Return where Go is; skip where it is not, which in CI is a failure."""
    go = shutil.which("go")
    if go is None:
        told = "no Go here: kustomize cannot be built, nor the definitions of custom resources be had"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(told)
    return go


@cache
def kustomize(folder: Path) -> list[Document]:
    """Return the objects of a kustomization, each read once."""
    done = subprocess.run(
        [need_go(), "tool", "kustomize", "build", str(folder)],
        cwd=HERE / "kustomize",
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    assert (0, "") == (done.returncode, done.stderr[-2000:])
    return [document for document in yaml.safe_load_all(done.stdout) if document]


@pytest.fixture(scope="session")
def rendered() -> Callable[[str], list[Document]]:
    """Return what renders a folder below deploy/k8s."""
    return lambda folder: kustomize(K8S / folder)
