"""Middleware named in the settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from service.plugins import load_middleware
from service.settings import SettingsError

SOURCE = """
from dataclasses import dataclass

@dataclass
class Mark:
    name: str

def wrap(app):
    async def marked(scope, receive, send):
        async def say(message):
            if message["type"] == "http.response.start":
                message = message | {"headers": [*message["headers"], (b"x-mark", NAME)]}
            await send(message)
        await app(scope, receive, say)
    return marked

not_callable = 3
"""


def write(path: Path, name: str) -> Path:
    """Write a middleware that marks answers with a name."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"NAME = {name.encode()!r}\n{SOURCE}")
    return path


def test_file_and_module_are_found(tmp_path: Path) -> None:
    """A path with a callable, or a dotted module with one."""
    assert callable(load_middleware(f"{write(tmp_path / 'a.py', 'a')}:wrap"))
    assert load_middleware("json:dumps").__module__ == "json"


def test_files_of_one_name_do_not_mix(tmp_path: Path) -> None:
    """Two folders may hold a file of the same name, a stdlib module's included."""
    one = load_middleware(f"{write(tmp_path / 'one' / 'queue.py', 'one')}:wrap")
    two = load_middleware(f"{write(tmp_path / 'two' / 'queue.py', 'two')}:wrap")
    assert (one.__globals__["NAME"], two.__globals__["NAME"]) == (b"one", b"two")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("wrap", "must read"),
        ("file.py:", "must read"),
        (":wrap", "must read"),
        ("nowhere.py:wrap", "FileNotFoundError"),
        ("no_such_module_x:wrap", "ModuleNotFoundError"),
        ("json:nothing", "AttributeError"),
    ],
)
def test_name_that_leads_nowhere_is_refused(name: str, message: str) -> None:
    """The service does not start without a part that it was told to have."""
    with pytest.raises(SettingsError, match=message):
        load_middleware(name)


def test_file_that_breaks_or_holds_no_callable_is_refused(tmp_path: Path) -> None:
    """Whatever the file raises is told in one line."""
    broken = tmp_path / "broken.py"
    broken.write_text("1 / 0\n")
    with pytest.raises(SettingsError, match="ZeroDivisionError"):
        load_middleware(f"{broken}:wrap")
    with pytest.raises(SettingsError, match="is not callable"):
        load_middleware(f"{write(tmp_path / 'a.py', 'a')}:not_callable")


@pytest.mark.anyio
async def test_first_named_is_outermost(serve: Any, tmp_path: Path, good: dict[str, str]) -> None:
    """The order of the setting is the order from outside in, and all of it wraps the app."""
    names = tuple(f"{write(tmp_path / f'{name}.py', name)}:wrap" for name in ("outer", "inner"))
    async with serve(middleware=names) as (client, _app):
        response = await client.post("/v1/sentiment", json=good)
    assert response.headers.get_list("x-mark") == ["inner", "outer"]


@pytest.mark.anyio
async def test_time_in_a_middleware_is_time_of_the_recorded_request(
    serve: Any, tmp_path: Path, good: dict[str, str]
) -> None:
    """The recorder is outside: what a middleware does belongs to the row."""
    from probes.reader import RingFile, list_rings

    source = """
import asyncio

def wrap(app):
    async def slow(scope, receive, send):
        if scope["type"] == "http":
            await asyncio.sleep(0.05)
        await app(scope, receive, send)
    return slow
"""
    (tmp_path / "slow.py").write_text(source)
    async with serve(middleware=(f"{tmp_path}/slow.py:wrap",)) as (client, _app):
        await client.post("/v1/sentiment", json=good)
    (path,) = list_rings(tmp_path / "rings")
    (row,) = RingFile(path).read(0, 10).rows
    assert row["duration_ns"] >= 50_000_000
