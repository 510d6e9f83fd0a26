"""A Triton that does as it is told, and one that is silent."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_SPEC = importlib.util.spec_from_file_location("fake_triton_server", Path(__file__).with_name("fake.py"))
assert _SPEC is not None
assert _SPEC.loader is not None
_FAKE: Any = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_FAKE)


@pytest.fixture
def fake() -> Iterator[Any]:
    """Return a running fake."""
    with _FAKE.fake_triton() as running:
        yield running


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Return a port that takes connections and says nothing."""
    with _FAKE.silent_socket() as port:
        yield port
