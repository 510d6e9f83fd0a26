"""Images for the compose test: ours by their Dockerfiles, the others as stand-ins that hold the same programs."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from alerts.promtool import find_tool
from inferdeck.stack.jaeger_build import JaegerBuildError, compile_jaeger, module_digest
from inferdeck.version import ROOT
from tests.containers.machine import CACHE, HERE, Podman, alone, unavailable

__all__ = ["BASE", "base_image", "build_ours", "build_standins", "jaeger_binary", "wheels"]

BASE = "localhost/inferdeck-base:bookworm"
STANDINS = ("prometheus", "alertmanager", "jaeger")
# a compiler and headers for the recorder's core, busybox for health checks
_INCLUDE = "python3,python3-venv,python3-dev,gcc,libc6-dev,busybox,ca-certificates"
# what an image does not need: half of the size
_LEFT_OUT = ("usr/share/doc", "usr/share/man", "usr/share/locale", "var/lib/apt/lists", "var/cache/apt")


def base_image() -> Path:
    """Return a Debian with Python as a tar file, made once by debootstrap."""
    path = CACHE / "base-bookworm-2.tar"
    with alone("base"):
        if not path.exists():
            root, half = CACHE / "rootfs", path.with_suffix(".half")
            shutil.rmtree(root, ignore_errors=True)
            done = subprocess.run(
                ["debootstrap", "--variant=minbase", f"--include={_INCLUDE}", "bookworm", str(root)],  # noqa: S607
                capture_output=True,
                text=True,
                timeout=400,
                check=False,
            )
            if done.returncode != 0:
                unavailable(f"debootstrap failed: {(done.stdout + done.stderr)[-600:]}")
            for name in _LEFT_OUT:
                shutil.rmtree(root / name, ignore_errors=True)
            (root / "usr/bin/wget").symlink_to("/bin/busybox")
            subprocess.run(["tar", "-C", str(root), "-cf", str(half), "."], check=True, timeout=120)  # noqa: S607
            half.rename(path)
            shutil.rmtree(root, ignore_errors=True)
    return path


def wheels() -> Path:
    """Return a folder with every package that our images hold, hashes checked by pip."""
    locks = [ROOT / "docker" / f"requirements-{name}.lock" for name in ("service", "console", "build")]
    told = hashlib.sha256(b"".join(lock.read_bytes() for lock in locks)).hexdigest()[:16]
    folder = CACHE / f"wheels-{told}"
    with alone("wheels"):
        if not folder.exists():
            half = CACHE / "wheels.half"
            shutil.rmtree(half, ignore_errors=True)
            for lock in locks:
                pip = [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", "--only-binary=:all:"]
                argv = [*pip, "--python-version", "3.11", "--dest", str(half), "-r", str(lock)]
                done = subprocess.run(argv, capture_output=True, text=True, timeout=400, check=False)
                if done.returncode != 0:
                    unavailable(f"the packages of {lock.name} cannot be had: {done.stderr[-500:]}")
            for old in CACHE.glob("wheels-*"):
                shutil.rmtree(old, ignore_errors=True)
            half.rename(folder)
    return folder


def jaeger_binary() -> Path:
    """Return Jaeger, compiled once from its Go module: about seven minutes of CPU."""
    path = CACHE / f"jaeger-{module_digest()}"
    with alone("jaeger"):
        if not path.exists():
            try:
                compile_jaeger(path, timeout_seconds=1500)
            except JaegerBuildError as error:
                unavailable(str(error))
    return path


def build_ours(podman: Podman, project: str, env_file: Path) -> None:
    """Build our images as the compose file says, without network: packages come from a mounted folder."""
    folder = wheels()
    environment = podman.environment | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/wheels"}
    # docker's format keeps the health check, which the other drops; a layer a step would be written and thrown away
    options = f"--podman-build-args=--format docker --layers=false --network none --volume {folder}:/wheels:ro"
    argv = [str(Path(sys.executable).parent / "podman-compose"), "-p", project, "--in-pod=false", options]
    argv += ["-f", "docker-compose.observability.yml", "--env-file", str(env_file), "build", "service", "exporter"]
    done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


def build_standins(podman: Podman, folder: Path) -> dict[str, str]:
    """Build the stand-ins; return the variable of the compose file and the image of each."""
    shutil.copy(_binary("prometheus"), folder / "prometheus")
    alertmanager = folder / "alertmanager"
    alertmanager.mkdir()
    shutil.copy(_binary("prometheus-alertmanager"), alertmanager / "alertmanager")
    shutil.copytree(_assets(), alertmanager / "assets")
    shutil.copy(jaeger_binary(), folder / "jaeger")
    images = {}
    for name in STANDINS:
        image = f"localhost/standin-{name}:test"
        file = HERE / "standins.Dockerfile"
        words = ["--build-arg", f"BASE={BASE}", "--network", "none", "--target", name, "-f", str(file), "-t", image]
        podman.run("build", "--quiet", *words, str(folder), timeout=200)
        images[f"{name.upper()}_IMAGE"] = image
    return images


def _package_of(tool: str) -> Path | None:
    """Return the folder of Debian's package that a wrapper of `inferdeck.tool_install` starts a tool from."""
    found = find_tool(tool)
    if found is None:
        unavailable(f"no {tool} here")
        raise AssertionError
    package = found.resolve().parent.parent / tool
    return package if (package / "usr" / "bin" / tool).is_file() else None


def _binary(tool: str) -> Path:
    package = _package_of(tool)
    found = find_tool(tool)
    assert found is not None
    return package / "usr" / "bin" / tool if package else found.resolve()


def _assets() -> Path:
    package = _package_of("prometheus-alertmanager")
    return (package or Path("/")) / "usr" / "share" / "prometheus" / "alertmanager"
