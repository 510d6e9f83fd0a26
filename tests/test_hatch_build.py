"""The build of the compiled core: it is put into wheels where it can be had, and missed by nobody where it cannot."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from probes.core import HERE, SOURCES, binary_path, core_state

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What a build needs of the checkout, without anything built."""
    (tmp_path / "probes").mkdir()
    for name in SOURCES:
        shutil.copy(HERE / name, tmp_path / "probes" / name)
    shutil.copy(ROOT / "hatch_build.py", tmp_path / "hatch_build.py")
    return tmp_path


def build(checkout: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the build as `make setup` does."""
    return subprocess.run(
        [sys.executable, "hatch_build.py"],
        cwd=checkout,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


class Warnings(list[str]):
    """What hatchling would show."""

    def display_warning(self, text: str) -> None:
        """Keep it."""
        self.append(text)


def hook(checkout: Path, app: Any) -> tuple[Any, dict[str, Any]]:
    """Return the hook as hatchling makes it for a wheel, and fresh build data."""
    spec = importlib.util.spec_from_file_location("hatch_build_of_the_test", checkout / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = module.CoreHook(str(checkout), {}, None, None, str(checkout), "wheel", app)
    return made, {"artifacts": [], "pure_python": True, "infer_tag": False}


def test_without_a_compiler_the_build_says_so_and_leaves_nothing(checkout: Path) -> None:
    """One line, exit 1; make goes on, a wheel is made without it."""
    done = build(checkout, CC="/nonexistent/cc")

    assert 1 == done.returncode
    assert "the recorder runs interpreted" in done.stderr.strip().splitlines()[-1]
    assert ("absent", None) == core_state(checkout / "probes", {})


def test_sources_that_do_not_compile_leave_nothing(checkout: Path) -> None:
    """As above."""
    with (checkout / "probes" / "_core_c.h").open("a") as file:
        file.write("#error by hand\n")
    done = build(checkout)

    assert (1, "absent") == (done.returncode, core_state(checkout / "probes", {})[0])


def test_a_wheel_without_compiler_is_pure(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the same package, slower."""
    monkeypatch.setenv("CC", "/nonexistent/cc")
    told = Warnings()
    made, data = hook(checkout, told)
    made.initialize("standard", data)

    assert {"artifacts": [], "pure_python": True, "infer_tag": False} == data
    assert len(told) == 1


@pytest.mark.parametrize(("version", "tagged"), [("standard", True), ("editable", False)])
def test_a_wheel_with_the_core_bears_its_platform(checkout: Path, version: str, tagged: bool) -> None:
    """The file is packed though git ignores it; an editable install finds it in the checkout."""
    built = binary_path(checkout / "probes")
    built.write_bytes(b"compiled before")
    made, data = hook(checkout, Warnings())
    made.initialize(version, data)

    assert ([f"/probes/{built.name}"] if tagged else []) == data["artifacts"]
    assert (not tagged, tagged) == (data["pure_python"], data["infer_tag"])


def test_the_core_is_built_once(checkout: Path) -> None:
    """What is there for these sources stays."""
    built = binary_path(checkout / "probes")
    built.write_bytes(b"compiled before")
    done = build(checkout, CC="/nonexistent/cc")

    assert (0, b"compiled before") == (done.returncode, built.read_bytes())
