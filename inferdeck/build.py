"""`build`: writes the generated files of the checkout anew."""

from __future__ import annotations

from typing import Any

from inferdeck.errors import CannotRun
from inferdeck.version import ROOT, in_checkout

__all__ = ["build"]


def build() -> dict[str, Any]:
    """Write rules, Alertmanager's template, promtool tests and tables from the catalogue, and dashboards from boards.

    Returns:
        `changed`: paths that were written or removed.

    Raises:
        CannotRun: If this is no checkout, or the catalogue is wrong; nothing is written then.
    """
    from alerts.load import CatalogueError, load_catalogue
    from alerts.write import write as write_alerts
    from inferdeck.gateway_rules import write_gateway
    from inferdeck.stack.compose.configuration import write_configuration

    if not in_checkout():
        raise CannotRun("generated files are built in a checkout", "clone the repository and run it there")
    try:
        from dashboards.files import write as write_dashboards
    except ImportError as error:
        raise CannotRun(f"dashboards cannot be built: {error}", "pip install '.[dashboards]'") from error
    try:
        load_catalogue(ROOT / "alerts" / "catalogue")
        # Dashboards first: alerts lead to their panels by the committed names.
        changed = [*write_dashboards(ROOT), *write_alerts(ROOT)]
        # what the containers of the compose stack read
        changed += write_configuration(ROOT) if (ROOT / "docker").is_dir() else []
        changed += write_gateway(ROOT) if (ROOT / "deploy").is_dir() else []
        return {"changed": changed}
    except CatalogueError as error:
        raise CannotRun(str(error).partition("\n")[0], "mend the catalogue file") from error
    except ValueError as error:
        raise CannotRun(str(error).partition("\n")[0], "mend the board, or the catalogue file") from error
