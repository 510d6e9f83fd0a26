"""What a program may do to the stack, as far as no stack is needed to see it."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from inferdeck.drill.handle import StackHandle
from inferdeck.stack.parts import cluster_targets


def test_a_cluster_is_named_to_prometheus_while_it_lasts(tmp_path: Path) -> None:
    """In the file that the stack's Prometheus looks at; gone afterwards."""
    stack = cast("Any", SimpleNamespace(plan=SimpleNamespace(state_dir=tmp_path)))
    path = cluster_targets(tmp_path)

    with StackHandle(stack, None, 20.0).scrape_cluster("127.0.0.1:9"):
        assert [{"targets": ["127.0.0.1:9"]}] == json.loads(path.read_text())
        assert 0o600 == stat.S_IMODE(path.stat().st_mode)

    assert not path.exists()
