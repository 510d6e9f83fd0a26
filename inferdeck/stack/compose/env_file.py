"""The file of variables beside the compose file: secrets that were made once, and what else the user wrote there."""

from __future__ import annotations

import re
import secrets
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

from inferdeck.errors import CannotRun
from probes.private_file import write_private

__all__ = ["SECRETS", "complete_env_file", "read_env_file"]

# What the compose file asks for and nobody may know beforehand.
SECRETS = ("INFERDECK_EXPORTER_API_TOKEN", "INFERDECK_TRIAGE_TOKEN", "GRAFANA_ADMIN_PASSWORD")
# 24 random bytes: 192 bits, more than the 128 that OWASP asks of a session token
_BYTES = 24
_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)")
HEAD = (
    "# Written by `inferdeck up --stack compose`; read by docker compose. Not for git, nor for anybody else's eyes.\n"
    "# .env.example tells what each is for. Grafana keeps the password of its first start.\n"
)


def _make_secret() -> str:
    return secrets.token_urlsafe(_BYTES)


def read_env_file(path: Path) -> dict[str, str]:
    """Return the variables of a file; none when it is not there.

    Args:
        path: Lines of NAME=value, as docker compose reads them; quotes around a value are taken off.

    Raises:
        CannotRun: If it is there and cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise CannotRun(f"cannot read {path}: {error}", "mend or remove it; a new one is written then") from error
    found = (_LINE.fullmatch(line) for line in text.splitlines())
    return {match[1]: match[2].strip().strip("'\"") for match in found if match}


def complete_env_file(path: Path, make: Callable[[], str] = _make_secret) -> Mapping[str, str]:
    """Return the variables of a file after adding the secrets that it lacks; what stands there stays as it is.

    Args:
        path: The file; it is made (0600) when it is missing, and closed to others when it is open.
        make: Makes one secret.

    Raises:
        CannotRun: If it cannot be read or written.
    """
    known = read_env_file(path)
    missing = {name: make() for name in SECRETS if not known.get(name)}
    try:
        if missing:
            before = path.read_text(encoding="utf-8") if path.exists() else HEAD
            kept = "".join(
                f"{line}\n"
                for line in before.splitlines()
                # an empty one from the example would be read after ours, or before it: one of each
                if not ((match := _LINE.fullmatch(line)) and match[1] in missing)
            )
            write_private(path, (kept + "".join(f"{name}={value}\n" for name, value in missing.items())).encode())
        elif stat.S_IMODE(path.stat().st_mode) & 0o077:
            path.chmod(0o600)
    except OSError as error:
        raise CannotRun(f"cannot write {path}: {error.strerror}", "the secrets of the stack live there") from error
    return known | missing
