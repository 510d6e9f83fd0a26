"""Compile Jaeger from its Go module, once: no binary of it is in Debian's packages.

The module's files are in `tests/containers/jaeger`; Go checks each package against `go.sum`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from alerts.promtool import tools_dir
from inferdeck.version import ROOT

__all__ = ["JaegerBuildError", "compile_jaeger", "main", "module_digest"]

MODULE: Final = ROOT / "tests" / "containers" / "jaeger"
_PACKAGE: Final = "github.com/jaegertracing/jaeger/cmd/jaeger"


class JaegerBuildError(Exception):
    """Jaeger cannot be compiled here; the text says why."""


def module_digest(module: Path = MODULE) -> str:
    """Return 16 hex digits that stand for the versions of all that is compiled in."""
    return hashlib.sha256((module / "go.sum").read_bytes()).hexdigest()[:16]


def compile_jaeger(target: Path, *, timeout_seconds: float = 1800.0, module: Path = MODULE) -> None:
    """Compile into *target*, which appears when it is complete.

    Args:
        target: The program's path.
        timeout_seconds: Longest time to spend; two loaded cores need about ten minutes.
        module: Folder of go.mod and go.sum.

    Raises:
        JaegerBuildError: If there is no Go, no module, or the compiler fails.
    """
    go = shutil.which("go")
    if go is None:
        raise JaegerBuildError("no Go here to compile Jaeger with; install Go 1.24.6 or newer (https://go.dev/dl)")
    if not (module / "go.mod").is_file():
        raise JaegerBuildError(f"no {module}: Jaeger is compiled from a checkout; or put its binary `jaeger` on PATH")
    target.parent.mkdir(parents=True, exist_ok=True)
    half = target.with_suffix(".half")
    # static, since an image's C library may be another one; without symbols it links in half the time
    argv = [go, "build", "-trimpath", "-ldflags=-s -w", "-o", str(half), _PACKAGE]
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"}
    try:
        done = subprocess.run(
            argv, cwd=module, env=environment, capture_output=True, text=True, timeout=timeout_seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise JaegerBuildError(f"Jaeger was not compiled within {timeout_seconds:.0f} s; run it again") from error
    if done.returncode != 0:
        raise JaegerBuildError(f"Jaeger cannot be compiled: {done.stderr[-500:]}")
    half.replace(target)


def main(arguments: list[str]) -> int:
    """Compile into `<tools folder>/bin/jaeger` unless it is there.

    Args:
        arguments: The tools folder; by default where the stack looks.
    """
    target = (Path(arguments[0]) if arguments else tools_dir()).absolute() / "bin" / "jaeger"
    if not target.exists():
        try:
            compile_jaeger(target)
        except JaegerBuildError as error:
            sys.stderr.write(f"jaeger: {error}\n")
            return 2
    sys.stdout.write(f"jaeger: {target}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
