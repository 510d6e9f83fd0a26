"""Kubernetes objects from a file, a folder, or a kustomization, which is rendered first."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import yaml

from inferdeck.errors import CannotRun

__all__ = ["Document", "of_kind", "read_objects"]

Document = dict[str, Any]

RENDER_SECONDS: Final = 60.0
KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
RENDERERS: Final = (("kustomize", ("build",)), ("kubectl", ("kustomize",)))


def read_objects(path: Path, find: Callable[[str], str | None] = shutil.which) -> list[Document]:
    """Return the objects of a file or folder, those of a List apart.

    Args:
        path: A YAML or JSON file, a folder of them, or a folder with a kustomization.
        find: Returns where a program is, or None.

    Raises:
        CannotRun: If there is nothing to read, or it cannot be.
    """
    path = path.expanduser().absolute()
    if path.is_dir() and any((path / name).is_file() for name in KUSTOMIZATIONS):
        found = _parse(_render(path, find), str(path))
    elif path.is_dir():
        files = sorted(one for one in path.iterdir() if one.suffix in {".yaml", ".yml", ".json"})
        found = [document for one in files for document in _parse(_text(one), one.name)]
    else:
        found = _parse(_text(path), path.name)
    if not found:
        raise CannotRun(f"no Kubernetes object in {path}", "give rendered YAML, or a folder with a kustomization.yaml")
    return found


def of_kind(documents: Iterable[Document], kind: str) -> list[Document]:
    """Return the objects of a kind."""
    return [one for one in documents if one.get("kind") == kind]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no text"
        raise CannotRun(f"cannot read {path}: {reason}", "give a readable file or folder") from error


def _render(folder: Path, find: Callable[[str], str | None]) -> str:
    for name, words in RENDERERS:
        program = find(name)
        if program is None:
            continue
        done = subprocess.run(
            [program, *words, str(folder)], capture_output=True, text=True, timeout=RENDER_SECONDS, check=False
        )
        if done.returncode != 0:
            raise CannotRun(f"{name} cannot render {folder}: {' '.join(done.stderr.split())[:300]}", "mend it there")
        return done.stdout
    raise CannotRun(
        f"{folder} is a kustomization, and neither kustomize nor kubectl is here",
        "render it elsewhere (`kubectl kustomize DIR > objects.yaml`) and give the file",
    )


def _parse(text: str, name: str) -> list[Document]:
    try:
        documents = [one for one in yaml.safe_load_all(text) if one is not None]
    except yaml.YAMLError as error:
        raise CannotRun(f"{name} is no YAML: {' '.join(str(error).split())[:200]}", "mend the file") from error
    found: list[Document] = []
    for one in documents:
        if not isinstance(one, dict) or not isinstance(one.get("kind"), str):
            raise CannotRun(f"{name} holds something that is no Kubernetes object", "each needs apiVersion and kind")
        items = one.get("items") if one["kind"].endswith("List") else None
        found += [item for item in items if isinstance(item, dict)] if isinstance(items, list) else [one]
    return found
