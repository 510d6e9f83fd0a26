"""Objects are read from files, folders, lists and kustomizations; what is none is refused in one line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from inferdeck.errors import CannotRun
from inferdeck.manifests.read import of_kind, read_objects

ROOT = Path(__file__).resolve().parents[3]
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}}


def write(path: Path, *documents: object) -> Path:
    """Write documents into a file."""
    path.write_text(yaml.safe_dump_all(documents), encoding="utf-8")
    return path


def test_a_file_a_folder_and_a_list_hold_the_same(tmp_path: Path) -> None:
    """A list from kubectl, a stream from kustomize, folders from people."""
    file = write(tmp_path / "all.yaml", NODE, None, POD)
    listed = write(tmp_path / "list.yml", {"apiVersion": "v1", "kind": "List", "items": [NODE, POD]})
    folder = tmp_path / "folder"
    folder.mkdir()
    write(folder / "1.yaml", NODE)
    write(folder / "2.json", POD)
    (folder / "README.md").write_text("no object")

    assert [NODE, POD] == read_objects(file) == read_objects(listed) == read_objects(folder)
    assert [POD] == of_kind(read_objects(file), "Pod")


@pytest.mark.skipif(not shutil.which("kubectl") and not shutil.which("kustomize"), reason="neither renderer is here")
def test_a_kustomization_is_rendered_first() -> None:
    """By whichever renderer is there."""
    (deployment,) = of_kind(read_objects(ROOT / "deploy" / "k8s" / "base"), "Deployment")

    assert "inferdeck" == deployment["metadata"]["namespace"]


def test_without_a_renderer_it_says_how_to_go_on() -> None:
    """The command that renders it elsewhere."""
    with pytest.raises(CannotRun, match="kubectl kustomize DIR"):
        read_objects(ROOT / "deploy" / "k8s" / "base", find=lambda _name: None)


def test_a_renderer_that_fails_is_told_with_its_words(tmp_path: Path) -> None:
    """Not with a traceback."""
    (tmp_path / "kustomization.yaml").write_text("resources: [missing.yaml]\n")
    program = tmp_path / "kustomize"
    program.write_text("#!/bin/sh\necho 'missing.yaml: no such file' >&2\nexit 1\n")
    program.chmod(0o755)

    with pytest.raises(CannotRun, match=r"missing\.yaml: no such file"):
        read_objects(tmp_path, find=lambda name: str(program) if name == "kustomize" else None)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [", "is no YAML"),
        ("- 1\n", "no Kubernetes object"),
        ("kind: 3\n", "no Kubernetes object"),
        ("", "no Kubernetes object in"),
    ],
)
def test_what_is_no_object_is_refused(tmp_path: Path, text: str, told: str) -> None:
    """With the file's name."""
    path = tmp_path / "odd.yaml"
    path.write_text(text)

    with pytest.raises(CannotRun, match=told):
        read_objects(path)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    """In one line."""
    with pytest.raises(CannotRun, match="No such file"):
        read_objects(tmp_path / "none.yaml")
