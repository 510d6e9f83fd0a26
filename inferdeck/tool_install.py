"""Make Prometheus, Alertmanager and their tools available: from PATH, else Debian's packages unpacked into `.tools`.

Nothing is installed on the machine and no daemon is started: packages are downloaded and unpacked, that is all. apt
checks the archive's signature and each package's hash.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from alerts.promtool import TOOLS, find_tool, tools_dir

__all__ = ["ToolInstallError", "ensure_tools", "main"]

_PACKAGES = {"prometheus": ("prometheus", "promtool"), "prometheus-alertmanager": ("prometheus-alertmanager", "amtool")}
_APT_TIMEOUT_SECONDS = 300.0
_ASSETS = "usr/share/prometheus/alertmanager"
_DESCRIPTOR = "/proc/self/fd/9"
_WRAPPER = """#!/bin/sh
# Written by inferdeck/tool_install.py, which tells why.
package="$(dirname "$(readlink -f "$0")")/../{package}"
exec 9< "$package/{assets}"
exec "$package/usr/bin/{binary}" "$@"
"""
_BY_HAND = (
    "install Prometheus >= 2.42 and Alertmanager >= 0.25 (binaries {missing}) on PATH, or put them into {bin} "
    "(https://prometheus.io/download)"
)


class ToolInstallError(Exception):
    """The tools are missing and could not be fetched; the text says what to install."""


def ensure_tools(target: Path | None = None, environ: Mapping[str, str] = os.environ) -> dict[str, Path]:
    """Return where each tool is, fetching Debian's packages into *target* when some are missing.

    Args:
        target: The tools folder; by default `INFERDECK_TOOLS_DIR`, else `.tools` beside the packages.
        environ: Where `PATH` and `INFERDECK_TOOLS_DIR` are looked up.

    Returns:
        Absolute path by tool name, all of `alerts.promtool.TOOLS`.

    Raises:
        ToolInstallError: With one line that tells what to install by hand.
    """
    target = (target or tools_dir(environ)).absolute()
    environ = {**environ, "INFERDECK_TOOLS_DIR": str(target)}
    if missing := _missing(environ):
        for need in ("apt-get", "dpkg-deb"):
            if shutil.which(need, path=environ.get("PATH", "")) is None:
                raise ToolInstallError(f"no {need} here: " + _by_hand(missing, target))
        for package, binaries in _PACKAGES.items():
            if any(binary in missing for binary in binaries):
                _fetch(package, binaries, target, environ)
    if missing := _missing(environ):
        raise ToolInstallError("the packages did not hold all tools: " + _by_hand(missing, target))
    return {name: path for name in TOOLS if (path := find_tool(name, environ)) is not None}


def _missing(environ: Mapping[str, str]) -> list[str]:
    return [name for name in TOOLS if find_tool(name, environ) is None]


def _by_hand(missing: Sequence[str], target: Path) -> str:
    return _BY_HAND.format(missing=", ".join(missing), bin=target / "bin")


def _fetch(package: str, binaries: Sequence[str], target: Path, environ: Mapping[str, str]) -> None:
    target.mkdir(parents=True, exist_ok=True)
    # Unpacked beside its final place and renamed, so that a set-up broken off half-way leaves no half a tool behind.
    with tempfile.TemporaryDirectory(dir=target, prefix="fetch-") as scratch:
        folder = Path(scratch)
        _download(package, folder, target, environ)
        debs = sorted(folder.glob("*.deb"))
        if not debs:
            raise ToolInstallError(f"apt-get downloaded no {package}: " + _by_hand(binaries, target))
        _run(["dpkg-deb", "-x", str(debs[0]), str(folder / "tree")], folder, environ, binaries, target)
        final = target / package
        if final.exists():
            shutil.rmtree(final)
        (folder / "tree").rename(final)
    (target / "bin").mkdir(exist_ok=True)
    for binary in binaries:
        entry = target / "bin" / binary
        entry.unlink(missing_ok=True)
        if _untie(final, binary):
            entry.write_text(_WRAPPER.format(package=package, assets=_ASSETS, binary=binary), encoding="utf-8")
            entry.chmod(0o755)
        else:
            entry.symlink_to(Path("..") / package / "usr" / "bin" / binary)


def _untie(tree: Path, binary: str) -> bool:
    """Let a program that reads its files from Debian's fixed folder read them from where they were unpacked.

    Debian's Alertmanager does not start without /usr/share/prometheus/alertmanager/default.tmpl, and has no option for
    another place. That folder's name in the unpacked copy is overwritten by one of the same length that leads to an
    open file descriptor, which the wrapper points at the unpacked folder: nothing is written outside the tools folder,
    and neither root nor a namespace is needed.

    Args:
        tree: The unpacked package.
        binary: The program's name.

    Returns:
        Whether the program was tied to the folder, and must now be started by the wrapper.
    """
    path = tree / "usr" / "bin" / binary
    content, tied = path.read_bytes(), f"/{_ASSETS}".encode()
    if tied not in content or not (tree / _ASSETS).is_dir():
        return False
    # "/." again and again changes nothing about where a path leads.
    free = (_DESCRIPTOR + "/." * len(tied))[: len(tied)].rstrip(".").ljust(len(tied), "/").encode()
    path.write_bytes(content.replace(tied, free))
    return True


def _download(package: str, folder: Path, target: Path, environ: Mapping[str, str]) -> None:
    try:
        _run(["apt-get", "-q", "download", package], folder, environ, [package], target)
    except ToolInstallError:
        # The machine's package lists are missing or old, and renewing them takes root; lists of our own do not.
        own = folder / "apt"
        for part in ("lists/partial", "cache/archives/partial"):
            (own / part).mkdir(parents=True, exist_ok=True)
        options = ["-o", f"Dir::State::lists={own / 'lists'}", "-o", f"Dir::Cache={own / 'cache'}"]
        _run(["apt-get", "-q", *options, "update"], folder, environ, [package], target)
        _run(["apt-get", "-q", *options, "download", package], folder, environ, [package], target)


def _run(command: list[str], cwd: Path, environ: Mapping[str, str], wanted: Sequence[str], target: Path) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env={**environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_APT_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolInstallError(f"{command[0]} did not run ({error}): " + _by_hand(wanted, target)) from error
    if done.returncode != 0:
        lines = [line for line in done.stdout.splitlines() if line.strip()] or ["no output"]
        raise ToolInstallError(f"{command[0]} failed ({lines[-1].strip()}): " + _by_hand(wanted, target))


def main(arguments: Sequence[str] = ()) -> int:
    """Fetch what is missing and say where each tool is.

    Args:
        arguments: At most one: the tools folder.

    Returns:
        Exit status: 0 when all are there, 2 after one line that tells what to install.
    """
    try:
        found = ensure_tools(Path(arguments[0]) if arguments else None)
    except ToolInstallError as error:
        sys.stderr.write(f"inferdeck: {error}\n")
        return 2
    for name, path in found.items():
        sys.stdout.write(f"{name}: {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
