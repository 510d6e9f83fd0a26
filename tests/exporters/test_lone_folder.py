"""Whose rows are followed when nobody says it: the only service's without a stack, and nobody's by guessing."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from exporters.exporter import Exporter
from exporters.lone_folder import SeveralFoldersError, lone_ring_dir, lone_rings_parent
from exporters.serving import CannotStartError
from exporters.settings import ExporterSettings
from probes import Recorder, RecorderSettings
from probes.settings import default_ring_dir


@pytest.fixture
def find(tmp_path: Path) -> Callable[[], Path | None]:
    """Return the search, in a shared memory of the test's own."""
    return lambda: lone_ring_dir({}, tmp_path)


def record(shared_memory: Path, service: str) -> Path:
    """Have a service record into its default folder."""
    folder = default_ring_dir(service, {}, shared_memory)
    Recorder.open(folder, service, settings=RecorderSettings(ring_rows=64, sensors=False)).close()
    return folder


def test_there_is_none_until_a_service_records(tmp_path: Path, find: Callable[[], Path | None]) -> None:
    """Neither a missing parent, nor empty folders, nor files in it are a service's."""
    before = find()
    parent = lone_rings_parent({}, tmp_path)
    (parent / "empty").mkdir(parents=True)
    (parent / "file").touch()
    between = find()
    folder = record(tmp_path, "reviews")

    assert (None, None, folder) == (before, between, find())


def test_folders_of_stacks_and_drills_are_not_meant(tmp_path: Path, find: Callable[[], Path | None]) -> None:
    """They have exporters of their own, which are told."""
    for name in ("stack-0123abcd", "run-0123abcd"):
        record(tmp_path, name)

    assert find() is None


def test_a_link_is_no_folder(tmp_path: Path, find: Callable[[], Path | None]) -> None:
    """What it leads to may be anybody's."""
    folder = record(tmp_path, "reviews")
    elsewhere = folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(elsewhere)

    assert find() is None


def test_several_are_named_with_the_variable_and_not_guessed_at(
    tmp_path: Path, find: Callable[[], Path | None]
) -> None:
    """One line, however many there are."""
    for number in range(8):
        record(tmp_path, f"service{number}")

    with pytest.raises(SeveralFoldersError, match=r"service0, .*service4, \.\.\.\): set INFERDECK_RING_DIR") as caught:
        find()
    with pytest.raises(CannotStartError, match="set INFERDECK_RING_DIR"):
        Exporter(ExporterSettings(state_dir=tmp_path / "state"), find_ring_dir=find)
    assert "\n" not in str(caught.value)


def test_a_variable_for_the_rows_does_not_move_the_search(tmp_path: Path) -> None:
    """Whoever looks for the default folder means the default one; without shared memory it lies below the state."""
    assert tmp_path / f"inferdeck-{os.geteuid()}" == lone_rings_parent({"INFERDECK_RING_DIR": "/rows"}, tmp_path)
    assert Path("/s/rings") == lone_rings_parent({"INFERDECK_STATE_DIR": "/s"}, tmp_path / "none")


def test_an_exporter_waits_for_the_service_and_then_follows_it(
    tmp_path: Path, find: Callable[[], Path | None], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Started first, it says where it waits; the first service that records is followed, archive included."""
    monkeypatch.delenv("INFERDECK_RING_DIR", raising=False)
    caplog.set_level(logging.INFO)
    exporter = Exporter(ExporterSettings(state_dir=tmp_path / "state", tick_seconds=60), find_ring_dir=find)
    exporter.start()
    try:
        waits = exporter.health()
        folder = record(tmp_path, "reviews")
        exporter.tick()
        follows = exporter.health()
        record(tmp_path, "another")
        exporter.tick()
        assert exporter.archiver is not None
        followed = (exporter.ring_dir, exporter.follower.ring_dir, exporter.archiver.ring_dir)
    finally:
        exporter.stop()

    assert (False, 0) == (waits["ring_dir_exists"], waits["rings"])
    assert (True, 1, str(folder)) == (follows["ring_dir_exists"], follows["rings"], follows["ring_dir"])
    assert (folder, folder, folder) == followed
    assert "waiting: no service has recorded below" in caplog.text
    assert f"rows from {folder}" in caplog.text


def test_an_exporter_that_waits_does_not_choose_between_two(
    tmp_path: Path, find: Callable[[], Path | None], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """When two came at once it says so, once, and waits on."""
    monkeypatch.delenv("INFERDECK_RING_DIR", raising=False)
    exporter = Exporter(ExporterSettings(state_dir=tmp_path / "state", tick_seconds=60), find_ring_dir=find)
    exporter.start()
    try:
        record(tmp_path, "one")
        record(tmp_path, "two")
        exporter.tick()
        exporter.tick()
        health = exporter.health()
    finally:
        exporter.stop()

    assert (False, "ok") == (health["ring_dir_exists"], health["status"])
    assert 1 == caplog.text.count("(one, two): set INFERDECK_RING_DIR")
