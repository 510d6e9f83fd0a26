"""`triton install`: the real Triton's environment."""

from __future__ import annotations

import click

from inferdeck.result import Outcome
from inferdeck.verbs.common import reports

__all__ = ["triton"]


@click.group(short_help="Install the real Triton for `up --backend triton`.")
def triton() -> None:
    r"""Install the real Triton, in an environment of its own below the tools folder.

    \b
    Examples:
      inferdeck triton install
    """


@triton.command()
@reports
def install(*, quiet: bool) -> Outcome:
    r"""Make Triton's environment (320 MB) from its own hashed lock, unless it is there.

    It is the server out of NVIDIA's PyTriton wheel with a Python backend for ONNX models; the model repository is the
    one that NVIDIA's image serves. `up --backend triton` does this by itself.

    \b
    Examples:
      inferdeck triton install
    """
    from inferdeck.stack.triton import install_triton
    from inferdeck.terminal import sayer

    folder = install_triton(sayer(quiet=quiet))
    return Outcome({"folder": str(folder)}, 0, lambda console: console.print(f"Triton is in {folder}", soft_wrap=True))
