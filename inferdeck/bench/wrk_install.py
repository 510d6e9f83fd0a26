"""Finds wrk, the load generator: on PATH, in the tools folder, else from Debian's package unpacked there."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from alerts.promtool import tools_dir
from inferdeck.errors import CannotRun

__all__ = ["ensure_wrk", "find_wrk"]

_MEND = "install wrk (Debian: apt-get install wrk) or put the binary on PATH"
# wrk is linked against LuaJIT, which few machines have
_PACKAGES = ("wrk", "libluajit-5.1-2")


def find_wrk(environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return where wrk is, on PATH or in the tools folder's `bin`; None when it is missing."""
    found = shutil.which("wrk", path=environ.get("PATH", "")) or shutil.which(
        "wrk", path=str(tools_dir(environ) / "bin")
    )
    return Path(found) if found else None


def ensure_wrk(environ: Mapping[str, str] = os.environ) -> Path:
    """Return where wrk is, unpacking Debian's package into the tools folder when it is missing.

    Args:
        environ: Where `PATH` and `INFERDECK_TOOLS_DIR` are looked up.

    Raises:
        CannotRun: If it is missing and cannot be fetched.
    """
    if found := find_wrk(environ):
        return found
    for need in ("apt-get", "dpkg-deb"):
        if shutil.which(need, path=environ.get("PATH", "")) is None:
            raise CannotRun("wrk, the load generator, is missing", _MEND)
    _fetch(tools_dir(environ).absolute(), environ)
    if found := find_wrk(environ):
        return found
    raise CannotRun("the wrk package held no wrk", _MEND)


def _fetch(target: Path, environ: Mapping[str, str]) -> None:
    target.mkdir(parents=True, exist_ok=True)
    # unpacked beside its final place and renamed, so that a fetch broken off half-way leaves no half a tool behind
    with tempfile.TemporaryDirectory(dir=target, prefix="fetch-") as scratch:
        folder = Path(scratch)
        _run(["apt-get", "-q", "download", *_PACKAGES], folder, environ)
        for deb in folder.glob("*.deb"):
            _run(["dpkg-deb", "-x", str(deb), str(folder / "tree")], folder, environ)
        final = target / "wrk"
        if final.exists():
            shutil.rmtree(final)
        (folder / "tree").rename(final)
    library = next((final / "usr" / "lib").glob("*/libluajit*"), None)
    (target / "bin").mkdir(exist_ok=True)
    script = target / "bin" / "wrk"
    # exec keeps the pid, so that whoever stops the script stops wrk
    where = f"$here/wrk/{library.parent.relative_to(final)}" if library else "$here"
    script.write_text(
        "#!/bin/sh\n# unpacked from Debian's package; its LuaJIT lies beside it\n"
        'here=$(dirname "$(dirname "$(readlink -f "$0")")")\n'
        f'LD_LIBRARY_PATH="{where}" exec "$here/wrk/usr/bin/wrk" "$@"\n',
        encoding="utf-8",
    )
    script.chmod(0o755)


def _run(command: list[str], cwd: Path, environ: Mapping[str, str]) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env={**environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotRun(f"wrk is missing, and {command[0]} did not run ({error})", _MEND) from error
    if done.returncode != 0:
        lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()] or ["no output"]
        raise CannotRun(f"wrk is missing, and {command[0]} failed ({lines[-1]})", _MEND)
