"""From a stack's folders to one file, and from the file to the verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inferdeck.bundle.collect import run_bundle
from inferdeck.bundle.container import unpack
from inferdeck.bundle.forget import erase_in_bundle
from inferdeck.bundle.replay import replay_bundle
from inferdeck.erase import subject_of
from inferdeck.errors import CannotRun
from inferdeck.schema import validate
from inferdeck.settings import PORT_FIELDS, StackSettings, load_settings
from inferdeck.stack.ports import free_ports
from runbooks.store import ReportStore
from tests.inferdeck.bundle.conftest import ME, YOU, Fly

STAMP = {"version": "1", "commit": "c", "started": "2026-01-01T00:00:00.000Z", "took_s": 0.1}


@pytest.fixture
def settings(tmp_path: Path, ring_dir: Path) -> StackSettings:
    """Settings of a stack that does not run, with folders of its own."""
    ports = dict(zip(PORT_FIELDS, free_ports(len(PORT_FIELDS)), strict=True))
    folders = {"state_dir": tmp_path / "state", "ring_dir": ring_dir, "model_dir": tmp_path / "model"}
    return load_settings(**ports, **folders)


def opened(path: Path, folder: Path) -> dict[str, Any]:
    """Unpack a bundle and return its manifest."""
    folder.mkdir()
    return unpack(path, folder)


def test_a_bundle_of_now_is_masked_and_names_what_triage_names(
    settings: StackSettings, fly: Fly, tmp_path: Path
) -> None:
    """Rows without Prometheus: the result has its shape, the replay names the same, no id of a person is inside."""
    fly()
    logs = settings.state_path / "logs"
    logs.mkdir(parents=True)
    (logs / "service.log").write_text(f"request of {ME} failed\npassword=hunter2\n")

    outcome = run_bundle(settings, None, "15m", None)

    validate("bundle", STAMP | outcome.payload)
    path = Path(outcome.payload["bundle"])
    assert (30, ["prometheus"], True) == (
        outcome.payload["rows"], outcome.payload["missing"], outcome.payload["replay"]["same"]
    )  # fmt: skip
    assert settings.state_path / "bundles" == path.parent
    manifest = opened(path, tmp_path / "out")
    names = {"report.json", "doctor.json", "logs/service.log"}
    assert names <= {member["name"] for member in manifest["members"]}
    for file in (tmp_path / "out").rglob("*"):
        assert not file.is_file() or not any(word.encode() in file.read_bytes() for word in (ME, YOU, "hunter2")), file
    answer = replay_bundle(path)
    validate("triage", STAMP | answer)
    assert outcome.payload["replay"]["verdict"] == answer["verdict"]["slug"]


def test_a_kept_report_is_bundled_with_its_own_window(settings: StackSettings, fly: Fly, tmp_path: Path) -> None:
    """The last one without options, any one by its id."""
    fly()
    store = ReportStore(settings.state_path / "reports")
    window = {"from": "2026-01-01T00:00:00.000Z", "to": "2026-01-01T00:15:00.000Z"}
    kept = store.save({"alert": "ServiceDown", "window": window, "verdict": {"slug": "service_down"}})

    by_default = run_bundle(settings, None, None, None).payload
    by_id = run_bundle(settings, kept["id"], None, tmp_path / "b.tar.gz").payload

    assert (kept["id"], "ServiceDown", window) == (by_default["report"], by_default["alert"], by_default["window"])
    assert (kept["id"], str(tmp_path / "b.tar.gz")) == (by_id["report"], by_id["bundle"])
    # these rows tell nothing of a dead service, and the bundle says so itself
    assert {"verdict": None, "report_verdict": "service_down", "same": False} == by_id["replay"]


@pytest.mark.parametrize(
    ("report", "since", "word"),
    [
        (None, None, "no report is kept"),
        ("../../etc/passwd", None, "no report"),
        ("x", "15m", "exclude each other"),
        (None, "1s", "is no window"),
        (None, "soon", "is no duration"),
    ],
)
def test_what_cannot_be_bundled_is_one_line(
    settings: StackSettings, fly: Fly, report: str | None, since: str | None, word: str
) -> None:
    """And leaves nothing."""
    fly()

    with pytest.raises(CannotRun, match=word):
        run_bundle(settings, report, since, None)
    assert not (settings.state_path / "bundles").exists()


def test_without_rows_and_series_there_is_nothing_to_bundle(settings: StackSettings) -> None:
    """An empty bundle would look like evidence of silence."""
    with pytest.raises(CannotRun, match="neither rows nor series"):
        run_bundle(settings, None, "15m", None)


def test_a_session_is_erased_from_a_kept_bundle(settings: StackSettings, fly: Fly, tmp_path: Path) -> None:
    """By its hash, under the same name, with new checksums; others stay; again changes nothing."""
    ring = fly()
    assert ring.path is not None
    path = Path(run_bundle(settings, None, "15m", None).payload["bundle"])
    subject = subject_of(ME, None, ring.path.parent, tmp_path / "none")

    first = erase_in_bundle(path, subject.hashes, subject.words)
    before = path.read_bytes()
    second = erase_in_bundle(path, subject.hashes, subject.words)

    assert (True, 0) == (first >= 10, second)
    assert before == path.read_bytes()
    opened(path, tmp_path / "out")
    inside = b"".join(file.read_bytes() for file in (tmp_path / "out").rglob("*") if file.is_file())
    mine, yours = (f"{subject_of(who, None, ring.path.parent, tmp_path).hashes[0]:016x}" for who in (ME, YOU))
    assert (False, True) == (mine.encode() in inside, yours.encode() in inside)


def test_a_bundle_whose_parts_are_nonsense_is_refused_or_told(
    settings: StackSettings, fly: Fly, tmp_path: Path
) -> None:
    """Checksums are right, content is not: one line, or a source that is missing."""
    from inferdeck.bundle.container import pack

    fly()
    path = Path(run_bundle(settings, None, "15m", None).payload["bundle"])
    folder = tmp_path / "out"
    manifest = opened(path, folder)
    (folder / "manifest.json").unlink()
    (folder / "metrics.json").write_text("[" * 50_000)
    for ring in (folder / "rings").iterdir():
        ring.write_bytes(b"no ring")
    (folder / "report.json").write_text(json.dumps({"verdict": {"slug": {"not": "a slug"}}}))
    hostile = {"report": "\033[2Jgone", "alert": ["x"], "rings_alive": {"../../x": True, "none.ring": True}}
    pack(folder, tmp_path / "nonsense.tar.gz", {k: v for k, v in manifest.items() if k != "members"} | hostile)
    pack(folder, tmp_path / "lacks.tar.gz", {"alert": None})

    answer = replay_bundle(tmp_path / "nonsense.tar.gz")
    with pytest.raises(CannotRun, match="manifest lacks"):
        replay_bundle(tmp_path / "lacks.tar.gz")

    assert {"report": None, "verdict": None, "same": True} == answer["replay"]
    assert answer["alert"] is None
    assert (True, ["prometheus", "ring"]) == (answer["abstained"], sorted(answer["missing_sources"]))
    json.dumps(answer)
