"""Triton's environment: the server out of the nvidia-pytriton wheel, with a Python and a numpy of its own.

It is made by `inferdeck triton install` from requirements.lock beside this file, hashes checked, and used as it is
afterwards. What the facts behind each step are is written where the step is.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

__all__ = ["Home", "InstallError", "install"]

_HERE = Path(str(files("service.triton")))
_TIMEOUT_SECONDS = 900.0
# The wheels that the lock names exist for these, and so do the stubs in the server's wheel.
_PYTHONS = ((3, 11), (3, 12))


class InstallError(RuntimeError):
    """Triton cannot be had here; the message is one line."""


@dataclass(frozen=True)
class Home:
    """Where Triton's environment is.

    Attributes:
        folder: Holds `env` (a virtual environment) and `backends`; `complete` names what was installed.
    """

    folder: Path

    @property
    def site(self) -> Path:
        """Return the environment's packages."""
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        return self.folder / "env" / "lib" / version / "site-packages"

    @property
    def server(self) -> Path:
        """Return the server's program."""
        return self.site / "pytriton" / "tritonserver" / "bin" / "tritonserver"

    @property
    def backends(self) -> Path:
        """Return the folder of backends."""
        return self.folder / "backends"

    def lacks(self) -> str | None:
        """Return why Triton cannot be started from here, or None when it can."""
        try:
            made_of = (self.folder / "complete").read_text(encoding="ascii")
        except OSError:
            return "Triton's environment is not there; `inferdeck triton install` makes it"
        if made_of != _fingerprint() or not os.access(self.server, os.X_OK):
            return "Triton's environment is of another version; `inferdeck triton install` makes it anew"
        return None

    def environment(self) -> dict[str, str]:
        """Return what the server's process needs beyond the usual environment."""
        # Without the wheel's own libraries the stub ends in its loader, and the server waits for it for ever. The stub
        # also needs libpython, which for a Python built by hand lies where that Python says.
        libraries = [str(self.site.parent / "site-packages" / "nvidia_pytriton.libs")]
        if folder := sysconfig.get_config_var("LIBDIR"):
            libraries.append(str(folder))
        # The stub's interpreter looks at no PYTHONPATH; it finds this environment by the python3 on PATH.
        path = f"{self.folder / 'env' / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        return {"LD_LIBRARY_PATH": os.pathsep.join(libraries), "PATH": path}


def _fingerprint() -> str:
    """Return what an environment is made of: the lock, our backend, the Python."""
    parts = [(_HERE / "requirements.lock").read_bytes(), (_HERE / "backend" / "model.py").read_bytes()]
    parts.append(".".join(map(str, sys.version_info[:2])).encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def install(folder: Path, say: Callable[[str], None] = lambda _line: None) -> Home:
    """Make Triton's environment in *folder*, or return the one that is there.

    Args:
        folder: Gets about 320 MB.
        say: Gets one line for each step.

    Raises:
        InstallError: If this machine or Python cannot have it, or the packages cannot be fetched.
    """
    home = Home(folder.absolute())
    if home.lacks() is None:
        return home
    if (
        sys.platform != "linux"
        or os.uname().machine not in {"x86_64", "aarch64"}
        or sys.version_info[:2] not in _PYTHONS
    ):
        raise InstallError(
            "this Triton exists for Linux and Python 3.11 or 3.12; elsewhere run NVIDIA's image on the same repository"
        )
    home.folder.parent.mkdir(parents=True, exist_ok=True)
    with _alone(home.folder):
        if home.lacks() is not None:
            say("fetching Triton's environment, 120 MB")
            _make(home)
    return home


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one process make the environment; another that wants it as well waits."""
    with (folder.parent / f".{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make(home: Home) -> None:
    if home.folder.exists():
        shutil.rmtree(home.folder)
    # Made in its final place, since an environment cannot be moved; `complete` is written last.
    _run([sys.executable, "-m", "venv", "--without-pip", str(home.folder / "env")])
    python = str(home.folder / "env" / "bin" / "python3")
    options = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--quiet", "--disable-pip-version-check"]
    _run([sys.executable, "-m", "pip", "--python", python, "install", *options, "-r", str(_HERE / "requirements.lock")])
    _put_backends(home)
    (home.folder / "complete").write_text(_fingerprint(), encoding="ascii")


def _put_backends(home: Home) -> None:
    """Lay out the backends' folder: the Python backend with this Python's stub, and ours on top of it."""
    shipped = home.site / "pytriton" / "tritonserver"
    python = home.backends / "python"
    shutil.copytree(shipped / "backends" / "python", python, ignore=shutil.ignore_patterns("__pycache__"))
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for file in (shipped / "python_backend_stubs" / version).iterdir():
        shutil.copy2(file, python / file.name)
        (python / file.name).chmod(0o755)  # Triton would do it, and fails where it is not the owner
    ours = home.backends / "onnxruntime"
    ours.mkdir()
    shutil.copyfile(_HERE / "backend" / "model.py", ours / "model.py")


def _run(command: list[str]) -> None:
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, timeout=_TIMEOUT_SECONDS)  # noqa: PLW1510 - judged below
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InstallError(f"{Path(command[0]).name} did not run: {error}") from error
        if done.returncode != 0:
            said.seek(0)
            lines = [line.strip() for line in said if line.strip()] or ["no output"]
            raise InstallError(f"Triton's environment cannot be made: {lines[-1]}")
