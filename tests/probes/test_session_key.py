"""The secret is made once, taken up at a start, and what it replaces is kept, bounded."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from probes.folder import prepare_folder, read_key
from probes.ringfile import open_ring
from probes.session_key import MOST_RETIRED, current_key, read_keys, retired_keys, rotate, secret_path
from probes.settings import Identity, RecorderSettings


@pytest.fixture
def rings(tmp_path: Path) -> Path:
    """An empty folder of ring files."""
    folder = tmp_path / "rings"
    prepare_folder(folder)
    return folder


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """Where the secret will be."""
    return tmp_path / "state" / "session.key"


def test_where_the_secret_is() -> None:
    """In the state folder, unless a file is named; without either there is none."""
    assert secret_path({}) is None
    assert Path("s/session.key") == secret_path({"INFERDECK_STATE_DIR": "s"})
    assert Path("k") == secret_path({"INFERDECK_STATE_DIR": "s", "INFERDECK_KEY_FILE": "k"})


def test_it_is_made_at_the_first_start_and_outlives_the_rows(rings: Path, secret: Path) -> None:
    """0600; the next ring folder, after a start of the machine, has the same key."""
    key = current_key(rings, secret)

    assert key == read_key(rings) == secret.read_bytes()
    assert {0o600} == {stat.S_IMODE(path.stat().st_mode) for path in (secret, rings / "key")}
    (rings / "key").unlink()
    assert key == current_key(rings, secret)
    assert [] == retired_keys(rings)


def test_a_folder_that_has_a_key_already_gives_it_to_the_secret(rings: Path, secret: Path) -> None:
    """An update of the product loses no session."""
    before = read_key(rings, create=True)

    assert before == current_key(rings, secret) == secret.read_bytes()
    assert [before] == read_keys(rings)


def test_workers_who_start_at_once_agree(rings: Path, secret: Path) -> None:
    """On the first secret, and on one that was rotated."""
    with ThreadPoolExecutor(8) as workers:
        for _ in range(3):
            assert 1 == len(set(workers.map(lambda _: current_key(rings, secret), range(16))))
            rotate(secret)
    assert [] == [path for path in (*rings.iterdir(), *secret.parent.iterdir()) if path.name.startswith(".")]


def test_retired_keys_are_private_known_and_bounded(rings: Path, secret: Path) -> None:
    """The latest of them; the present one is first."""
    keys = []
    for number in range(MOST_RETIRED + 4):
        rotate(secret)
        keys.append(current_key(rings, secret))
        for path, _ in retired_keys(rings)[:1]:
            os.utime(path, (number, number))

    assert list(reversed(keys))[: MOST_RETIRED + 1] == read_keys(rings)
    assert {0o600} == {stat.S_IMODE(path.stat().st_mode) for path, _ in retired_keys(rings)}


def test_without_a_state_folder_that_can_be_written_the_rows_have_a_key_of_their_own(
    rings: Path, tmp_path: Path
) -> None:
    """Telemetry goes on; a file where the folder should be stands for a disk that cannot be written."""
    (tmp_path / "file").write_text("")

    assert current_key(rings, tmp_path / "file" / "session.key") == read_key(rings) == current_key(rings, None)


def test_a_damaged_secret_is_not_replaced_in_silence(rings: Path, secret: Path) -> None:
    """Another one would make sessions unfindable; the command puts one in place."""
    secret.parent.mkdir()
    secret.write_bytes(b"short")
    with pytest.raises(ValueError, match="is not a key"):
        current_key(rings, secret)

    rotate(secret)
    assert secret.read_bytes() == current_key(rings, secret)


def test_a_worker_takes_it_up_at_its_start(rings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that runs keeps its own, and the sessions of both are found."""
    monkeypatch.setenv("INFERDECK_STATE_DIR", str(tmp_path / "state"))

    def worker() -> bytes:
        ring = open_ring(rings, "s", Identity(), RecorderSettings(ring_rows=16, open_slots=4), lambda _: None)
        ring.close()
        return ring.key

    first = worker()
    rotate(tmp_path / "state" / "session.key")
    assert [first] == read_keys(rings)
    second = worker()
    assert first != second
    assert [second, first] == read_keys(rings)
