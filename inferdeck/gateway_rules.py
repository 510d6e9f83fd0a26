"""The gateway's rules as a committed file: written by `build`, compared by `check`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import yaml

__all__ = ["GATEWAY", "rules_text", "write_gateway"]

GATEWAY: Final = "deploy/gateway/nginx.conf"


def rules_text(root: Path) -> str:
    """Return what the file must say.

    Args:
        root: The checkout.
    """
    from service.contract_mock.gateway import nginx_rules

    document = yaml.safe_load((root / "service" / "openapi.yaml").read_text(encoding="utf-8"))
    settings = yaml.safe_load((root / "service" / "config" / "base.yaml").read_text(encoding="utf-8"))
    photos = {"/v1/photos": int(settings["photo_limit_bytes"])}
    return nginx_rules(document, int(settings["body_limit_bytes"]), photos)


def write_gateway(root: Path) -> list[str]:
    """Write the file where it differs.

    Args:
        root: The checkout.

    Returns:
        Its path, if it was written.
    """
    path, text = root / GATEWAY, rules_text(root)
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return []
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return [GATEWAY]
