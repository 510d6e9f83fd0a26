"""Imports go one way, and rooms stay small."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("probes", "exporters", "alerts", "dashboards", "runbooks", "service", "inferdeck")

# What a package may import of ours (docs/architecture.md); "package.module" allows that module alone.
ALLOWED = {
    "probes": set[str](),
    "exporters": {"probes"},
    "service": {"probes"},
    "runbooks": {"exporters", "probes"},
    "alerts": {"exporters.names"},
    "dashboards": {"exporters.names"},
    "inferdeck": set(PACKAGES),
}
# probes go into other people's services: nothing beyond these may be pulled in with them.
PROBES_MAY_USE = {"numpy", "psutil", "pynvml"}
# OpenCV is a dependency of this one part (extra `images`), which nothing else of probes imports.
IMAGES = ROOT / "probes" / "images"


def sources(package: str) -> list[Path]:
    """Return the package's modules."""
    return sorted((ROOT / package).rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    """Yield the absolute dotted names that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def foreign_imports(package: str, path: Path) -> list[str]:
    """Return the imports of *path* that cross a border it may not cross."""
    wrong = []
    for name in imports(path):
        top = name.split(".")[0]
        if top not in PACKAGES or top == package:
            continue
        if not any(name == allowed or name.startswith(f"{allowed}.") for allowed in ALLOWED[package]):
            wrong.append(name)
    return wrong


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_go_one_way(package: str) -> None:
    """A package imports only what the architecture lets it import."""
    wrong = {
        str(path.relative_to(ROOT)): found for path in sources(package) if (found := foreign_imports(package, path))
    }

    assert {} == wrong


def test_a_wrong_import_would_be_seen(tmp_path: Path) -> None:
    """The border check sees absolute imports, inner ones included, and lets allowed ones pass."""
    module = tmp_path / "m.py"
    module.write_text(
        "import exporters.names\ndef f():\n    from service.app import create_app\nfrom probes import stage\n"
    )

    assert ["exporters.names", "service.app.create_app"] == foreign_imports("probes", module)[:2]
    assert ["service.app.create_app"] == foreign_imports("exporters", module)


def test_probes_bring_nothing_along() -> None:
    """Probes import the standard library, numpy, psutil and pynvml alone: they run inside other people's services."""
    known = set(sys.stdlib_module_names) | PROBES_MAY_USE | {"probes"}
    wrong = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in sources("probes")
        for name in imports(path)
        if name.split(".")[0] not in known | ({"cv2"} if path.parent == IMAGES else set())
    }

    assert set() == wrong


def test_the_part_about_images_is_imported_by_no_other_part_of_probes() -> None:
    """Who attaches the recorder needs no OpenCV."""
    wrong = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in sources("probes")
        if path.parent != IMAGES
        for name in imports(path)
        if name.startswith("probes.images")
    }

    assert set() == wrong


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield all functions of a module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_rooms_stay_small() -> None:
    """No module is over 400 lines, no function over 50 (docstring not counted)."""
    long_modules, long_functions = [], []
    for path in (p for package in PACKAGES for p in sources(package)):
        where = str(path.relative_to(ROOT))
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 400:
            long_modules.append(f"{where}: {lines}")
        for function in functions(path):
            body = function.body[1:] if ast.get_docstring(function) else function.body
            if body and (length := (function.end_lineno or 0) - body[0].lineno + 1) > 50:
                long_functions.append(f"{where}:{function.lineno} {function.name}: {length}")

    assert [] == long_modules
    assert [] == long_functions


def test_every_test_file_is_collected() -> None:
    """A file below tests/ that holds a test function bears a name that pytest collects."""
    lost = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("*.py")
        if any(f.name.startswith("test_") for f in functions(path)) and not path.name.startswith("test_")
    ]

    assert [] == lost


def test_nothing_is_named_after_the_standard_library() -> None:
    """A module named like one of the standard library's would shadow it when run as a script."""
    names = {path.stem for package in PACKAGES for path in sources(package)} - {"__init__", "__main__"}

    assert set() == names & set(sys.stdlib_module_names)
