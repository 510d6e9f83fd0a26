"""`build`: writes the generated files of the checkout anew."""

from __future__ import annotations

from typing import Any

from inferdeck.errors import CannotRun
from inferdeck.version import ROOT, in_checkout

__all__ = ["build"]


def build() -> dict[str, Any]:
    """Write rules, Alertmanager's template, promtool tests and tables from the catalogue.

    Returns:
        `changed`: paths that were written or removed.

    Raises:
        CannotRun: If this is no checkout, or the catalogue is wrong; nothing is written then.
    """
    from alerts.load import CatalogueError
    from alerts.write import write

    if not in_checkout():
        raise CannotRun("generated files are built in a checkout", "clone the repository and run it there")
    try:
        return {"changed": write(ROOT)}
    except CatalogueError as error:
        raise CannotRun(str(error).partition("\n")[0], "mend the catalogue file") from error
