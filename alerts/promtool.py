"""Find and run the tools of Prometheus and Alertmanager: from `PATH`, else from `.tools/bin` below the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["TOOLS", "ToolMissingError", "ToolResult", "find_tool", "run_tool", "tools_dir"]

# Upstream's archives and images name the daemon `alertmanager`; Debian renames it. Both are the same program.
TOOLS: dict[str, tuple[str, ...]] = {
    "prometheus": ("prometheus",),
    "promtool": ("promtool",),
    "prometheus-alertmanager": ("prometheus-alertmanager", "alertmanager"),
    "amtool": ("amtool",),
}
_ROOT = Path(__file__).resolve().parent.parent


class ToolMissingError(Exception):
    """A tool is neither on PATH nor below the tools folder."""


@dataclass(frozen=True)
class ToolResult:
    """What a finished tool left: its exit status and its output, stdout and stderr together."""

    rc: int
    output: str


def tools_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder below which `bin/` holds the tools that set-up fetched.

    Args:
        environ: Where `INFERDECK_TOOLS_DIR` is looked up; without it the folder is `.tools` in the checkout, or in the
            working folder when installed from a wheel.
    """
    if chosen := environ.get("INFERDECK_TOOLS_DIR"):
        return Path(chosen).expanduser()
    return (_ROOT if (_ROOT / "pyproject.toml").is_file() else Path.cwd()) / ".tools"


def find_tool(name: str, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the absolute path of a tool, or None when it is neither on PATH nor below the tools folder.

    Args:
        name: One of `TOOLS`.
        environ: Where `PATH` and `INFERDECK_TOOLS_DIR` are looked up.

    Raises:
        KeyError: For a name that is not in `TOOLS`.
    """
    for binary in TOOLS[name]:
        for search in (environ.get("PATH", ""), str(tools_dir(environ) / "bin")):
            if search and (found := shutil.which(binary, path=search)):
                return Path(found).absolute()
    return None


def run_tool(
    name: str, arguments: Sequence[str | Path], cwd: Path | None = None, timeout_seconds: float = 60.0
) -> ToolResult:
    """Run a tool to its end and return its exit status and output.

    Args:
        name: One of `TOOLS`.
        arguments: What follows the program's name; never passed through a shell.
        cwd: Folder to run in; rule paths inside promtool's tests are relative to the test file, not to this.
        timeout_seconds: After this the tool is killed.

    Raises:
        ToolMissingError: With one line that tells how to get it.
        subprocess.TimeoutExpired: When it did not end in time.
    """
    path = find_tool(name)
    if path is None:
        where = tools_dir() / "bin"
        raise ToolMissingError(f"{name} is neither on PATH nor in {where}: run `python -m inferdeck.tool_install`")
    done = subprocess.run(
        [str(path), *map(str, arguments)],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=timeout_seconds,
        check=False,
    )
    return ToolResult(rc=done.returncode, output=done.stdout)
