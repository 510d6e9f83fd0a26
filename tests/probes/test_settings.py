from __future__ import annotations

import os
from pathlib import Path

from probes.settings import Identity, default_ring_dir


def test_rings_go_to_shared_memory_unless_told(tmp_path: Path) -> None:
    """The setting wins; without shared memory they go below the state folder."""
    mine = tmp_path / f"inferdeck-{os.geteuid()}" / "svc"

    assert mine == default_ring_dir("svc", {}, tmp_path)
    assert Path("/r") == default_ring_dir("svc", {"INFERDECK_RING_DIR": "/r"}, tmp_path)
    assert Path("/s/rings/svc") == default_ring_dir("svc", {"INFERDECK_STATE_DIR": "/s"}, tmp_path / "none")
    assert Path(".inferdeck/rings/svc") == default_ring_dir("svc", {}, tmp_path / "none")


def test_the_host_is_known_without_being_told() -> None:
    """Every other fingerprint is "" until somebody knows it."""
    assert Identity().host == os.uname().nodename
    assert "" == Identity().build == Identity().config == Identity().model == Identity().driver
