"""Settings of the stack: YAML base, then the profile's YAML, then the environment; the last one wins."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, YamlConfigSettingsSource

from inferdeck.errors import CannotRun

__all__ = [
    "JAEGER_PORTS",
    "PORT_FIELDS",
    "STATE_VARIABLE",
    "STREAM_PORT_FIELDS",
    "TRITON_PORT_FIELDS",
    "StackSettings",
    "load_settings",
    "stack_ring_dir",
]

CONFIG = Path(__file__).resolve().parent / "config"
PORT_FIELDS = (
    *("service_port", "admin_port", "exporter_port", "triage_port", "prometheus_port", "alertmanager_port"),
    *("jaeger_port", "jaeger_otlp_port"),
)
# listened on where Jaeger's program is there, and only then
JAEGER_PORTS = ("jaeger_port", "jaeger_otlp_port")
# named wherever nothing was found: a stack is known by its state folder, and each working folder has its own
STATE_VARIABLE = "INFERDECK_STATE_DIR"
Port = Field(ge=1, le=65535)
# of a Triton, which is part of a stack only where it is asked for
TRITON_PORT_FIELDS = ("triton_port", "triton_metrics_port", "triton_admin_port")
# of the stream of user queries, likewise
STREAM_PORT_FIELDS = ("stream_port",)


class StackSettings(BaseSettings):
    """What `up` needs to know; each field is `INFERDECK_STACK_<FIELD>` in the environment.

    The folders are shared with the parts and have shorter names: `INFERDECK_STATE_DIR`, `INFERDECK_RING_DIR`,
    `INFERDECK_SERVICE_MODEL_DIR`.
    """

    # An empty variable is an unset one: an empty state folder would be the working folder, and purged as such.
    model_config = SettingsConfigDict(
        env_prefix="INFERDECK_STACK_", extra="forbid", frozen=True, populate_by_name=True, env_ignore_empty=True
    )
    profiles: ClassVar[tuple[str, ...]] = ("dev", "prod")

    host: str = "127.0.0.1"
    service_port: int = Port
    admin_port: int = Port
    exporter_port: int = Port
    triage_port: int = Port
    prometheus_port: int = Port
    alertmanager_port: int = Port
    jaeger_port: int = Port
    # of the embedded stack alone; in containers it is not published
    jaeger_otlp_port: int = Port
    triton_port: int = Port
    triton_metrics_port: int = Port
    triton_admin_port: int = Port
    backend: Literal["onnx", "triton"] = "onnx"
    stream_port: int = Port
    stream: bool = False
    # of the compose stack alone
    grafana_port: int = Port
    service_workers: int = Field(ge=1, le=64)
    scrape_interval_seconds: int = Field(ge=1, le=15)
    ready_timeout_seconds: float = Field(gt=0)
    stop_grace_seconds: float = Field(gt=0)
    retention: str = Field(pattern=r"^\d+[smhdwy]$")
    retention_size: str = Field(pattern=r"^\d+[KMG]B$")
    state_dir: Path = Field(default=Path(".inferdeck"), validation_alias=STATE_VARIABLE)
    ring_dir: Path | None = Field(default=None, validation_alias="INFERDECK_RING_DIR")
    model_dir: Path = Field(default=Path("build/model"), validation_alias="INFERDECK_SERVICE_MODEL_DIR")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Order the sources: arguments, environment, the profile's YAML over base.yaml."""
        del dotenv_settings, file_secret_settings
        yaml = YamlConfigSettingsSource(settings_cls, yaml_file=[CONFIG / "base.yaml", CONFIG / f"{profile()}.yaml"])
        return (init_settings, env_settings, yaml)

    @property
    def ports(self) -> dict[str, int]:
        """Return the port of each listener by its setting's name."""
        names = PORT_FIELDS + (TRITON_PORT_FIELDS if self.backend == "triton" else ())
        names += STREAM_PORT_FIELDS if self.stream else ()
        return {name: int(getattr(self, name)) for name in names}

    def ports_with(self, tools: Iterable[str]) -> dict[str, int]:
        """Return the ports that a stack of the programs *tools* listens on."""
        return {name: port for name, port in self.ports.items() if name not in JAEGER_PORTS or "jaeger" in tools}

    @property
    def state_path(self) -> Path:
        """Return the state folder as an absolute path."""
        return self.state_dir.expanduser().absolute()

    @property
    def ring_path(self) -> Path:
        """Return the folder of the rows, absolute; a folder of its own for each state folder."""
        return (self.ring_dir or stack_ring_dir(self.state_path)).expanduser().absolute()

    @property
    def model_path(self) -> Path:
        """Return the folder of the model, absolute."""
        return self.model_dir.expanduser().absolute()


def profile() -> str:
    """Return the profile's name from `INFERDECK_PROFILE`, "dev" when unset."""
    return os.environ.get("INFERDECK_PROFILE", "dev")


def stack_ring_dir(state_dir: Path, shm: Path = Path("/dev/shm"), uid: int | None = None) -> Path:  # noqa: S108  # tmpfs is the point: rows survive a kill and cost no disk
    """Return where the rows of the stack in *state_dir* live when nothing is set.

    The stack's name holds a hash of the state folder, so that two stacks of one user never share a folder of rows.

    Args:
        state_dir: Absolute state folder.
        shm: The tmpfs to use when it is there.
        uid: Owner; the present user by default.
    """
    # eight digits: told apart on one machine, and still a short path
    name = f"stack-{hashlib.sha256(str(state_dir).encode()).hexdigest()[:8]}"
    if shm.is_dir() and sys.platform != "win32":
        return shm / f"inferdeck-{os.getuid() if uid is None else uid}" / name
    return state_dir / "rows"


def load_settings(**overrides: Any) -> StackSettings:
    """Read the settings of the present profile and environment.

    Args:
        **overrides: Fields that win over everything.

    Raises:
        CannotRun: If the profile is unknown or a value is wrong; names the setting and its variable.
    """
    if profile() not in StackSettings.profiles:
        raise CannotRun(
            f"unknown profile {profile()!r}", f"set INFERDECK_PROFILE to one of {', '.join(StackSettings.profiles)}"
        )
    try:
        return StackSettings(**overrides)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "?"
        variable = name if name.startswith("INFERDECK_") else f"INFERDECK_STACK_{name.upper()}"
        raise CannotRun(
            f"setting {name}: {first['msg']}", f"mend {variable} or inferdeck/config/{profile()}.yaml"
        ) from error
