"""Podman on this machine, apart from whatever else uses it here: own storage, own networks, all removed again."""

from __future__ import annotations

import fcntl
import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

__all__ = ["CACHE", "HERE", "Podman", "alone", "own_podman", "unavailable"]

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "inferdeck-tests"
# the plugin gives containers each other's names; runc is for machines whose control groups crun does not take
PACKAGES = ("podman", "debootstrap", "golang-github-containernetworking-plugin-dnsname", "runc")
PROGRAMS = ("podman", "debootstrap", "runc")
NAMES = Path("/usr/lib/cni/dnsname")


def unavailable(why: str) -> None:
    """Skip the test for want of something that a machine may lack; in CI that is a failure."""
    (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(why)


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Hold a lock of the cache: two runs at once must not install or build the same thing."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def install() -> None:
    """Install podman and debootstrap from Debian's packages where they are missing."""
    if all(shutil.which(name) for name in PROGRAMS) and NAMES.exists():
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        unavailable(f"no {', '.join(PROGRAMS)} here, and no right to install them")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    wait = ["-o", "DPkg::Lock::Timeout=120", "-qq"]
    with alone("apt"):
        for words in (["update"], ["install", "-y", "--no-install-recommends", *PACKAGES]):
            done = subprocess.run(
                ["apt-get", *wait, *words],  # noqa: S607
                env=environment,
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            if done.returncode != 0:
                unavailable(f"apt-get {words[0]} failed: {done.stderr[-500:]}")


@dataclass(frozen=True)
class Podman:
    """A podman with storage and networks of its own.

    Attributes:
        folder: All that it writes.
        environment: Makes podman use that folder.
    """

    folder: Path
    environment: dict[str, str]

    def run(self, *words: str, timeout: float = 120, check: bool = True) -> str:
        """Run podman and return what it wrote."""
        done = subprocess.run(
            ["podman", *words],  # noqa: S607
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert not check or done.returncode == 0, (words, done.stderr[-3000:])
        return done.stdout

    def clean(self) -> None:
        """Remove containers, networks, volumes and images, in this order, and the folder."""
        for words in (
            ("rm", "--all", "--force", "--time", "0"),
            ("network", "prune", "--force"),
            ("volume", "rm", "--all", "--force"),
            ("rmi", "--all", "--force"),
        ):
            self.run(*words, check=False)
        # podman keeps its own mount of the storage until it is asked to let go
        for mount in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines():
            place = mount.split()[1]
            if place.startswith(f"{self.folder}/"):
                subprocess.run(["umount", "--lazy", place], check=False)  # noqa: S607
        shutil.rmtree(self.folder, ignore_errors=True)


def _configure(folder: Path, runtime: str, *, stripped: bool) -> Podman:
    path = shutil.which(runtime) or runtime
    if stripped:
        text = (HERE / "runtime.sh").read_text(encoding="utf-8").replace("@REAL_RUNTIME@", path)
        path = str(folder / "runtime")
        Path(path).write_text(text, encoding="utf-8")
        Path(path).chmod(0o700)
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    (folder / "containers.conf").write_text(
        f'[containers]\ndefault_ulimits = ["nofile={files}:{files}"]\n'
        f'[engine]\nruntime = "{path}"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n'
        f'[network]\nnetwork_config_dir = "{folder}/networks"\n',
        encoding="utf-8",
    )
    driver = os.environ.get("INFERDECK_TEST_STORAGE_DRIVER", "overlay")
    (folder / "storage.conf").write_text(
        f'[storage]\ndriver = "{driver}"\ngraphroot = "{folder}/root"\nrunroot = "{folder}/run"\n', encoding="utf-8"
    )
    return Podman(
        folder,
        {
            **os.environ,
            "CONTAINERS_CONF": str(folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
            # what our own programs are to use as well
            "INFERDECK_COMPOSE_ENGINE": "podman",
        },
    )


@cache
def _way(base: Path) -> tuple[str, bool]:
    """Return the runtime that works here, and whether limits must be taken out: found by trying, once."""
    said = ""
    # Debian's podman is content with either: the one that is missing cannot even import an image.
    for runtime in filter(shutil.which, ("crun", "runc")):
        for stripped in (False, True):
            with _folder() as folder:
                podman = _configure(folder, runtime, stripped=stripped)
                podman.run("import", str(base), "localhost/tried")
                argv = ["podman", "run", "--rm", "--network", "none", "localhost/tried", "true"]
                done = subprocess.run(
                    argv, env=podman.environment, capture_output=True, text=True, timeout=60, check=False
                )
                podman.clean()
            if done.returncode == 0:
                return runtime, stripped
            said = done.stderr[-300:]
    unavailable(f"no container can be run here: {said}")
    raise AssertionError


@contextmanager
def _folder() -> Iterator[Path]:
    # short, as sockets lie below it; not in pytest's folder, which keeps what the last runs left
    folder = Path(tempfile.mkdtemp(prefix="idk-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def own_podman(base: Path) -> Iterator[Podman]:
    """Yield a podman that works on this machine and owns nothing else; all that it made is removed afterwards.

    Args:
        base: A root file system as a tar file, to try it with.
    """
    runtime, stripped = _way(base)
    with _folder() as folder:
        podman = _configure(folder, runtime, stripped=stripped)
        try:
            yield podman
        finally:
            podman.clean()
