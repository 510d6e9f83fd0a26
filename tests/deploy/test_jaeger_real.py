"""Jaeger's own configuration of the overlay, judged by Jaeger."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.containers.images import jaeger_binary
from tests.deploy.conftest import K8S

SHIPPED = (K8S / "overlays" / "jaeger" / "jaeger.yaml").read_text(encoding="utf-8")


# A fresh machine compiles Jaeger first, once for this and the compose stack.
@pytest.mark.real
@pytest.mark.timeout(1700)
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("", ""), ""),
        (("server_urls", "servers"), "servers"),
        (("trace_storage: main", "trace_storage: main, other: 1"), "other"),
    ],
)
def test_jaeger_takes_the_configuration_and_no_misspelt_one(change: tuple[str, str], told: str, tmp_path: Path) -> None:
    """Validated without being run: the store that it names is nobody's here."""
    path = tmp_path / "jaeger.yaml"
    path.write_text(SHIPPED.replace(*change) if change[0] else SHIPPED)

    done = subprocess.run(
        [str(jaeger_binary()), "validate", "--config", str(path)],
        env={"ELASTICSEARCH_USER": "user", "ELASTICSEARCH_PASSWORD": "password"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert bool(told) == (done.returncode != 0), done.stdout + done.stderr
    assert told in done.stdout + done.stderr
