"""Settings of the triage service, from the environment (`INFERDECK_TRIAGE_*`)."""

from __future__ import annotations

from pathlib import Path

from pydantic import AliasChoices, Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from exporters.serving import is_loopback
from runbooks.engine import LOOKBACK_SECONDS
from runbooks.mapping.load import find_mapping
from runbooks.store import MOST_REPORTS

__all__ = ["TriageSettings"]


class TriageSettings(BaseSettings):
    """What can be set; every field is `INFERDECK_TRIAGE_<FIELD>` unless it says otherwise.

    Attributes:
        ring_dir: Folder of ring files (`INFERDECK_RING_DIR`); unset, the only one of a service without a stack.
        state_dir: Reports and waiting incidents lie below it (`INFERDECK_STATE_DIR`).
        prometheus_url: Prometheus (`INFERDECK_PROMETHEUS_URL`); empty for none.
        host: Address to listen on.
        port: Port to listen on; 0 takes a free one.
        token: Bearer token that senders and readers must show; needed when *host* is not a loopback address.
        most_reports: Reports that are kept.
        most_waiting: Incidents that may wait; more are refused, so that the sender tries again.
        lookback_seconds: How far back a triage looks.
        mapping: Of a service without our rows: name or file of the mapping by which its own metrics are read.
        job: Its scrape job; looked for when empty.
        investigate: Whether an alert about data starts `inferdeck investigate`, whose answer its report then has.
    """

    model_config = SettingsConfigDict(env_prefix="INFERDECK_TRIAGE_", extra="ignore", populate_by_name=True)

    ring_dir: Path | None = Field(default=None, validation_alias=AliasChoices("INFERDECK_RING_DIR", "ring_dir"))
    state_dir: Path = Field(
        default=Path(".inferdeck"), validation_alias=AliasChoices("INFERDECK_STATE_DIR", "state_dir")
    )
    prometheus_url: str = Field(
        default="http://127.0.0.1:19090",
        validation_alias=AliasChoices("INFERDECK_PROMETHEUS_URL", "prometheus_url"),
    )
    host: str = "127.0.0.1"
    port: int = Field(default=9465, ge=0, le=65535)
    token: SecretStr | None = None
    most_reports: int = Field(default=MOST_REPORTS, ge=1, le=10_000)
    most_waiting: int = Field(default=100, ge=1, le=10_000)
    lookback_seconds: float = Field(default=LOOKBACK_SECONDS, ge=60, le=86_400)
    mapping: str = ""
    job: str = ""
    investigate: bool = True

    @field_validator("state_dir", mode="before")
    @classmethod
    def _never_the_working_folder(cls, value: object) -> object:
        """Take an empty variable for an unset one; an empty address of Prometheus, though, means that there is none."""
        return value or Path(".inferdeck")

    @field_validator("ring_dir", mode="before")
    @classmethod
    def _never_all_files(cls, value: object) -> object:
        """Take an empty variable for an unset one."""
        return value or None

    @field_validator("prometheus_url")
    @classmethod
    def _http_address(cls, value: str) -> str:
        """Refuse what is no HTTP address."""
        if value and not value.startswith(("http://", "https://")):
            raise ValueError("must start with http:// or https://, such as http://127.0.0.1:19090")
        return value

    @field_validator("mapping")
    @classmethod
    def _known_mapping(cls, value: str) -> str:
        """Refuse a mapping that cannot be used at the start, and not at the first incident."""
        if value:
            find_mapping(value)
        return value

    @model_validator(mode="after")
    def _guarded(self) -> TriageSettings:
        """Refuse to take orders from a network without a token."""
        if not self.loopback and not (self.token and self.token.get_secret_value()):
            raise ValueError(
                f"host {self.host} is reachable from outside: set INFERDECK_TRIAGE_TOKEN, or bind 127.0.0.1"
            )
        return self

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the port."""
        return is_loopback(self.host)
