"""The service's settings: YAML by profile, overridden by the environment.

`config/base.yaml` holds every setting, `config/<profile>.yaml` what differs; the profile is `INFERDECK_PROFILE`, dev
unless told. `INFERDECK_SERVICE_<NAME>` overrides either. A key that nobody knows is refused, since a setting that is
silently not there is worse than a service that does not start.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import yaml
from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from service.device import Wanted
from service.text.preprocessing import preprocessing_without

__all__ = ["ENV_PREFIX", "PROFILES", "Settings", "SettingsError", "load_settings", "unknown_variables"]

ENV_PREFIX: Final = "INFERDECK_SERVICE_"
PROFILES: Final = ("dev", "prod")

_Port = Annotated[int, Field(ge=0, le=65535)]
_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
_Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]


class SettingsError(ValueError):
    """A setting cannot be used; the message is one line and names it."""


class Settings(BaseSettings):
    """Everything that can be set; config/base.yaml says what each is for, and holds the defaults."""

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, extra="forbid", frozen=True)

    profile: Literal["dev", "prod"]
    host: str
    port: _Port
    workers: int = Field(ge=1, le=64)
    admin_host: str
    admin_port: _Port
    model: Literal["linear", "transformer"]
    model_dir: Path
    model_retry_seconds: _Seconds
    backend: Literal["onnx", "triton"]
    triton_host: str
    triton_port: _Port
    triton_connections: int = Field(ge=1, le=512)
    triton_timeout_seconds: _Seconds
    triton_pad_tokens: int = Field(ge=0, le=8192)
    triton_version: Literal["1", "2"]
    canary_model: str | None
    canary_share: _Share
    canary_dir: Path | None
    canary_compare_share: _Share
    canary_error_share: _Share
    canary_flip_share: _Share
    canary_latency_ratio: float = Field(ge=1, le=1000, allow_inf_nan=False)
    canary_least_requests: int = Field(ge=10, le=512)
    replay_seconds: float = Field(ge=0, le=86_400, allow_inf_nan=False)
    memory_reserve_bytes: int = Field(ge=0)
    model_device: Wanted
    memory_device: Literal["auto", "gpu", "ram", "none"]
    memory_budget_bytes: int = Field(ge=0)
    gpu_index: int = Field(ge=0, le=63)
    degraded_answers: dict[Literal["gpu_saturated", "triton_down", "queue_full"], Literal["later", "now", "off"]]
    degraded_gpu_busy: float = Field(gt=0, lt=1)
    degraded_gpu_seconds: _Seconds
    fallback_places: int = Field(ge=1, le=100_000)
    results_dir: Path | None
    results_places: int = Field(ge=1, le=100_000)
    results_seconds: float = Field(ge=1, le=3600)
    photo_limit_bytes: int = Field(ge=1024, le=64 * 1024 * 1024)
    photo_places: int = Field(ge=1, le=1000)
    photo_pixels: int = Field(ge=4096, le=200_000_000)
    body_limit_bytes: int = Field(ge=1024, le=16 * 1024 * 1024)
    receive_timeout_seconds: _Seconds
    deadline_seconds: _Seconds
    inference_threads: int = Field(ge=1, le=64)
    queue_places: int = Field(ge=1, le=100_000)
    vip_places: int = Field(ge=1, le=100_000)
    vip_product_ids: Annotated[tuple[str, ...], NoDecode]
    vip_product_prefixes: Annotated[tuple[str, ...], NoDecode]
    vip_key_file: Path | None
    long_text_characters: int = Field(ge=0, le=100_000)
    long_places: int = Field(ge=1, le=100_000)
    scheduler_batching: bool | None
    batch_size: int = Field(ge=1, le=256)
    batch_wait_seconds: _Seconds
    tokenizer_cache_texts: int = Field(ge=0, le=10_000)
    knee_rps: float = Field(ge=0, le=1e6, allow_inf_nan=False)
    knee_share: float = Field(gt=0, le=1)
    postprocess_socket: Path | None
    postprocess_timeout_seconds: _Seconds
    keep_alive_seconds: int = Field(ge=1, le=3600)
    shutdown_seconds: int = Field(ge=1, le=3600)
    live_tick_limit_seconds: _Seconds
    recorder: bool
    opentelemetry: bool
    cleaning_without: Annotated[tuple[str, ...], NoDecode]
    records_dir: Path | None
    dead_letter_bytes: int = Field(ge=64 * 1024, le=1024**3)
    dead_letter_text: Literal["shape", "masked"]
    pii_mask_format: Literal["1", "2"]
    audit_bytes: int = Field(ge=64 * 1024, le=1024**3)
    audit_shares: dict[Literal["protocol", "schema", "pii", "quality"], Annotated[float, Field(ge=0, le=1)]]
    middleware: Annotated[tuple[str, ...], NoDecode]
    log_level: Literal["debug", "info", "warning", "error"]

    @field_validator("degraded_answers")
    @classmethod
    def _whole(cls, value: dict[str, str]) -> dict[str, str]:
        """Fill in what the environment's form, which names only what differs, leaves out."""
        return {"gpu_saturated": "later", "triton_down": "now", "queue_full": "later"} | value

    @model_validator(mode="after")
    def _fits(self) -> Settings:
        """Refuse what would ask one model with the tokens of another: Triton's repository holds the linear ones."""
        if self.model == "transformer" and self.backend == "triton":
            raise ValueError("model transformer is only there in process: set backend to onnx")
        return self

    @field_validator("cleaning_without", "middleware", "vip_product_ids", "vip_product_prefixes", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        """Read the environment's form, names parted by commas; a JSON list would be one more way to mistype it."""
        if isinstance(value, str):
            return tuple(part.strip() for part in value.strip("[] ").replace('"', "").split(",") if part.strip())
        return value

    @field_validator("cleaning_without")
    @classmethod
    def _steps(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        preprocessing_without(value)
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the signature is pydantic's
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take arguments alone: `load_settings` has put files, environment and overrides in order."""
        return (init_settings,)

    @property
    def model_threads(self) -> int:
        """Threads that tokenize and run the model; with Triton most of them wait for it."""
        return (
            self.inference_threads if self.backend == "onnx" else max(self.inference_threads, self.triton_connections)
        )

    @property
    def batching(self) -> bool:
        """Whether several texts share a call: unless told, where the model is in another process."""
        return self.backend == "triton" if self.scheduler_batching is None else self.scheduler_batching

    @property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits that tell two configurations apart; which port or host it is does not matter."""
        places = {"host", "port", "admin_host", "admin_port", "triton_host", "triton_port", "records_dir"}
        places |= {"postprocess_socket", "results_dir", "canary_dir"}
        told = self.model_dump_json(exclude=places)
        return hashlib.sha256(told.encode()).hexdigest()[:12]


def _read_files(profile: str, folder: Traversable) -> dict[str, Any]:
    """Return base.yaml with the profile's file over it."""
    if profile not in PROFILES:
        raise SettingsError(f"INFERDECK_PROFILE is {profile!r}; it must be one of {', '.join(PROFILES)}")
    return _read_file(folder, "base") | _read_file(folder, profile) | {"profile": profile}


def _read_file(folder: Traversable, name: str) -> dict[str, Any]:
    told = f"{name}.yaml"
    try:
        content = yaml.safe_load(folder.joinpath(told).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SettingsError(f"{told} cannot be read: {' '.join(str(error).split())}") from error
    # A profile in which nothing differs may be all comments; base.yaml may not.
    if content is None and name != "base":
        return {}
    if not isinstance(content, dict):
        raise SettingsError(f"{told} must hold names and values")
    unknown = sorted(str(key) for key in content if key not in Settings.model_fields or key == "profile")
    if unknown:
        raise SettingsError(f"{told} has unknown settings: {', '.join(unknown)}")
    return content


def unknown_variables(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the variables with the service's prefix that set nothing, such as misspelt ones.

    They are worth a warning and no more: the drill hands some of that prefix to its scripts.
    """
    known = {f"{ENV_PREFIX}{name}".lower() for name in Settings.model_fields} - {f"{ENV_PREFIX}profile".lower()}
    return sorted(n for n in environment if n.upper().startswith(ENV_PREFIX) and n.lower() not in known)


def load_settings(config_dir: Traversable | None = None, **overrides: Any) -> Settings:
    """Return the settings of this process.

    Args:
        config_dir: Folder of the YAML files; the package's own unless told.
        overrides: Settings that win over environment and files.

    Raises:
        SettingsError: If one cannot be used.
    """
    profile = os.environ.get("INFERDECK_PROFILE", "dev")
    values = _read_files(profile, config_dir or files("service").joinpath("config"))
    try:
        return Settings(**(values | EnvSettingsSource(Settings)() | overrides))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        name = str(first["loc"][0]) if first["loc"] else "SETTINGS"
        raise SettingsError(f"{ENV_PREFIX}{name.upper()}: {first['msg']}") from error
