"""A run's evidence as one file: what scoring it again needs, in about a hundredth of the room, and back.

A ring is mostly empty, so that 35 MB become half of one. What only people read (logs, answers, expositions) stays out.
The file is one of `inferdeck.bundle.container`, which bounds and checks what it opens.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from inferdeck.bundle.container import pack, unpack
from inferdeck.errors import CannotRun

__all__ = ["SUFFIX", "pack_run", "unpacked_runs"]

SUFFIX: Final = ".run.tar.gz"
NEEDED_FILES: Final = ("ground_truth.json", "alerts.json")
NEEDED_FOLDERS: Final = ("rings", "prometheus")


def pack_run(folder: Path) -> Path:
    """Put a run's evidence into a file beside its folder, and remove the folder; return the file.

    Args:
        folder: The run's.

    Raises:
        CannotRun: If the file cannot be written or read back; the folder is left as it was.
    """
    target = folder.with_name(folder.name + SUFFIX)
    try:
        with tempfile.TemporaryDirectory(prefix=".pack-", dir=folder.parent) as scratch:
            # links: the same bytes under the same names, without what is not needed
            for name in NEEDED_FOLDERS:
                if (folder / name).is_dir():
                    shutil.copytree(folder / name, Path(scratch) / name, copy_function=os.link)
            for name in NEEDED_FILES:
                if (folder / name).is_file():
                    os.link(folder / name, Path(scratch) / name)
            pack(Path(scratch), target, {"run": folder.name})
        # read back before the original goes: what cannot be opened again is no evidence
        with tempfile.TemporaryDirectory(prefix=".pack-", dir=folder.parent) as scratch:
            unpack(target, Path(scratch))
    except CannotRun:
        target.unlink(missing_ok=True)
        raise
    except OSError as error:
        target.unlink(missing_ok=True)
        raise CannotRun(f"cannot pack {folder}: {error.strerror}", "make room, or leave --packed out") from error
    shutil.rmtree(folder)
    return target


@contextmanager
def unpacked_runs(runs_dir: Path) -> Iterator[list[Path]]:
    """Yield the folders of a drill's runs in their order; packed ones are unpacked for as long.

    Args:
        runs_dir: The drill's folder.

    Raises:
        CannotRun: If a packed one is damaged, or holds what no run does.
    """
    folders = {path.parent.name: path.parent for path in runs_dir.glob("*/ground_truth.json")}
    with ExitStack() as scratches:
        for file in sorted(runs_dir.glob(f"*{SUFFIX}")):
            scratch = Path(scratches.enter_context(tempfile.TemporaryDirectory(prefix="inferdeck-run-")))
            folder = scratch / file.name.removesuffix(SUFFIX)
            folder.mkdir(mode=0o700)
            unpack(file, folder)
            if (folder / "ground_truth.json").is_file():
                folders.setdefault(folder.name, folder)
        yield [folders[name] for name in sorted(folders)]
