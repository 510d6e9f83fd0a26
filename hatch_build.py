"""Builds the compiled core of the recorder where that can be done; where it cannot, the package is whole without it.

hatchling calls it for wheels and editable installs; ``python hatch_build.py`` builds into the checkout.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent


CANNOT = (OSError, ImportError, subprocess.CalledProcessError)


class CoreHook(BuildHookInterface[Any]):
    """Puts the compiled core into wheels and beside editable installs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build it; say so and go on when that cannot be done.

        Args:
            version: ``standard`` or ``editable``.
            build_data: What hatchling packs; the wheel gets this platform's tag when the core is in it.
        """
        if self.target_name != "wheel":
            return
        try:
            path = build_core(Path(self.root))
        except CANNOT as error:
            self.app.display_warning(f"no compiled core ({error}); the recorder runs interpreted")
            return
        if version != "editable":
            build_data["artifacts"].append(f"/probes/{path.name}")
            build_data["pure_python"] = False
            build_data["infer_tag"] = True


def build_core(root: Path = ROOT) -> Path:
    """Compile the core and return its file; those of other sources, made for this interpreter, are deleted.

    Args:
        root: The checkout or the unpacked source distribution.

    Raises:
        OSError: If there is no compiler, or the platform is not Linux.
        ImportError: If Cython is missing.
        subprocess.CalledProcessError: If it does not compile; the output is on stderr.
    """
    if sys.platform != "linux" or sys.implementation.name != "cpython":
        raise OSError("the compiled core is for CPython on Linux")
    import Cython  # noqa: F401  # said plainly when it is missing

    package = root / "probes"
    target = _core_module(package).binary_path(package)
    if target.is_file():
        return target
    include = sysconfig.get_paths()["include"]
    compiler = os.environ.get("CC", "cc").split()
    with tempfile.TemporaryDirectory() as scratch:
        made, built = Path(scratch) / "_core.c", Path(scratch) / target.name
        subprocess.run([sys.executable, "-m", "cython", "-3", str(package / "_core.pyx"), "-o", str(made)], check=True)
        flags = ["-shared", "-fPIC", "-O2", "-g0", "-fwrapv", "-DNDEBUG"]
        subprocess.run([*compiler, *flags, f"-I{include}", f"-I{package}", str(made), "-o", str(built)], check=True)
        for old in package.glob("_core-*" + sysconfig.get_config_var("EXT_SUFFIX")):
            old.unlink()
        half = target.with_suffix(f".{os.getpid()}.new")
        half.write_bytes(built.read_bytes())
        half.chmod(0o755)
        half.rename(target)  # never half a file under its name: another process may be importing
    return target


def _core_module(package: Path) -> Any:
    # By its path and not by import: probes need numpy and psutil, which a build has not.
    spec = importlib.util.spec_from_file_location("core_of_the_build", package / "core.py")
    if spec is None or spec.loader is None:
        raise OSError(f"{package / 'core.py'} is missing")
    module = importlib.util.module_from_spec(spec)
    os.environ["INFERDECK_CORE"], before = "interpreted", os.environ.get("INFERDECK_CORE")
    try:
        spec.loader.exec_module(module)  # without loading what it finds
    finally:
        if before is None:
            del os.environ["INFERDECK_CORE"]
        else:
            os.environ["INFERDECK_CORE"] = before
    return module


def main() -> int:
    """Build into the checkout; 0 when it is there, 1 when it cannot be had."""
    try:
        print(build_core())  # noqa: T201
    except CANNOT as error:
        print(f"no compiled core ({error}); the recorder runs interpreted", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
