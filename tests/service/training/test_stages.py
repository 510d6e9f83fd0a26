"""The pipeline's stages, alone and under a real DVC: what runs again is what has changed for, and nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from service.artifacts import REFERENCE_FILE, load_artifacts
from service.training.command import FLOORS, TrainingError, train
from service.training.corpus import load_corpus
from service.training.pipeline import ALPHAS, NGRAMS
from service.training.stages import STAGES, main, read_params
from service.training.tokens import VOCABULARY

ROOT = Path(__file__).resolve().parents[3]
FILES = ("dvc.yaml", "params.yaml", ".dvcignore", ".dvc/config", ".dvc/.gitignore")
# Small enough for a test, large enough that all classes are in all splits.
SMALL = {"share": 0.02, "vocabulary": 500, "penalties": [1e-4], "floors": dict.fromkeys(vars(FLOORS), 0.0)}


def small(path: Path, **changes: object) -> None:
    """Write parameters with which a training takes a second."""
    given = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    floors = {"macro_f1": 0.0, "chinese_accuracy": 0.0, "logit_difference": 1e-3}
    path.write_text(yaml.safe_dump(given | SMALL | {"floors": floors} | changes), encoding="utf-8")


def test_parameters_are_the_defaults_of_the_command() -> None:
    """`dvc repro` and `inferdeck train` make the same model."""
    params = read_params(ROOT / "params.yaml")
    assert (1.0, VOCABULARY, NGRAMS, ALPHAS, 0) == (
        params.share,
        params.vocabulary,
        params.ngrams,
        params.penalties,
        params.seed,
    )
    assert FLOORS == params.floors


def test_the_graph_has_the_stages_and_their_code() -> None:
    """Each stage of the code is one of dvc.yaml, in order, and what it names is there."""
    graph = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    assert list(STAGES) == list(graph)
    for name, stage in graph.items():
        assert stage["cmd"].endswith(f" {name}")
        assert all((ROOT / one).is_file() for one in stage["deps"] if not one.startswith("build/"))
    assert {"service/text/clean.py", "service/text/chunks.py"} <= {d for s in graph.values() for d in s["deps"]}


def test_stages_make_what_one_process_makes(tmp_path: Path) -> None:
    """The same texts, tokens and weights, whether or not they went through files."""
    small(tmp_path / "params.yaml", share=0.03)
    for name in STAGES:
        assert 0 == main([name], tmp_path / "pipeline", tmp_path / "params.yaml")
    staged = load_artifacts(tmp_path / "model")
    params = read_params(tmp_path / "params.yaml")
    from service.training import stages

    corpus = load_corpus()
    part = {n: tuple(r for r in getattr(corpus, n) if stages._chosen(r.text, 0.03)) for n in ("train", "dev", "test")}
    options = {"alphas": params.penalties, "vocabulary": params.vocabulary}
    report = train(
        tmp_path / "whole",
        progress=lambda _what, _share: None,
        corpus=replace(corpus, **part),  # type: ignore[arg-type]
        floors=params.floors,
        options=options,
    )
    assert report.version == staged.version
    assert (tmp_path / "whole" / REFERENCE_FILE).read_bytes() == (tmp_path / "model" / REFERENCE_FILE).read_bytes()
    assert 0o600 == (tmp_path / "pipeline" / "rows.json").stat().st_mode & 0o777


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"ngrams": [1, 3]}, "n-grams of 1 to 3"), ({"share": 0}, "share"), ({"odd": 1}, "odd")],
)
def test_parameters_that_make_no_sense_are_named(
    tmp_path: Path, changes: dict[str, object], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, and no model."""
    small(tmp_path / "params.yaml", **changes)
    codes = [main([name], tmp_path / "pipeline", tmp_path / "params.yaml") for name in STAGES]
    assert 1 == codes[-1]
    assert said in capsys.readouterr().err
    assert not (tmp_path / "model").exists()


def test_a_missing_file_of_parameters_is_named(tmp_path: Path) -> None:
    """And what is no stage ends with the usage."""
    with pytest.raises(TrainingError, match=r"params\.yaml cannot be used"):
        read_params(tmp_path / "params.yaml")
    assert 2 == main(["clear"])


class Pipeline:
    """A copy of the checkout's pipeline with a DVC of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in FILES:
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
        shutil.copytree(
            ROOT / "service", folder / "service", ignore=shutil.ignore_patterns("__pycache__", "*.npz", "*.onnx")
        )
        bin_folder = folder / ".venv" / "bin"
        bin_folder.mkdir(parents=True)
        # The stages' interpreter: this one, which finds the copy's package first, since that lies in its folder.
        (bin_folder / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
        (bin_folder / "python").chmod(0o755)
        (folder / ".dvc" / "config.local").write_text(
            f"[core]\n    no_scm = true\n    site_cache_dir = {folder / 'site'}\n", encoding="utf-8"
        )
        small(folder / "params.yaml")

    def repro(self) -> list[str]:
        """Return the stages that were run."""
        environment = {
            **os.environ,
            "DVC_NO_ANALYTICS": "1",
            "DVC_GLOBAL_CONFIG_DIR": str(self.folder / "config"),
            "DVC_SYSTEM_CONFIG_DIR": str(self.folder / "config"),
            "HOME": str(self.folder / "home"),
        }
        done = subprocess.run(
            [sys.executable, "-m", "dvc", "repro"],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert 0 == done.returncode, done.stdout + done.stderr
        return re.findall(r"Running stage '(\w+)'", done.stdout)

    def change(self, name: str, before: str, after: str) -> None:
        """Change a file of the code."""
        path = self.folder / name
        text = path.read_text(encoding="utf-8")
        assert before in text
        path.write_text(text.replace(before, after), encoding="utf-8")


def test_exactly_what_changed_runs_again(tmp_path: Path) -> None:
    """First all; then nothing; another n-gram range: the training alone; other windows: those and the training."""
    pipeline = Pipeline(tmp_path)
    assert list(STAGES) == pipeline.repro()
    first = load_artifacts(tmp_path / "build" / "model")
    reference = (tmp_path / "build" / "model" / REFERENCE_FILE).read_bytes()
    assert [] == pipeline.repro()
    small(tmp_path / "params.yaml", ngrams=[1, 1])
    assert ["train"] == pipeline.repro()
    second = load_artifacts(tmp_path / "build" / "model")
    assert first.version != second.version
    assert reference != (tmp_path / "build" / "model" / REFERENCE_FILE).read_bytes()
    pipeline.change("service/text/chunks.py", "overlap: int = 128", "overlap: int = 64")
    assert ["windows", "train"] == pipeline.repro()
    third = load_artifacts(tmp_path / "build" / "model")
    assert second.preprocess_fingerprint != third.preprocess_fingerprint
    assert [] == pipeline.repro()
