"""Settings of the exporter, from the environment (`INFERDECK_EXPORTER_*`)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import AliasChoices, Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from exporters.archive.bounds import Limits
from exporters.keep import KeepRules
from exporters.names import INPUT_BUCKETS, OBJECTIVES_SECONDS
from exporters.serving import is_loopback

__all__ = ["ExporterSettings"]


class ExporterSettings(BaseSettings):
    """What can be set; every field is `INFERDECK_EXPORTER_<FIELD>` unless it says otherwise.

    Attributes:
        ring_dir: Folder of ring files (`INFERDECK_RING_DIR`); unset, the only one of a service without a stack.
        state_dir: Folder for cursors and totals (`INFERDECK_STATE_DIR`).
        host: Address to listen on.
        port: Port to listen on; 0 takes a free one.
        api_token: Bearer token that the look-up API asks for; needed when *host* is not a loopback address.
        tick_seconds: Pause between two looks at the rows, at most: a ring that fills quickly is looked at sooner.
        state_seconds: Longest time between two writes of the state file, which come sooner when a ring fills quickly.
        otlp_endpoint: OTLP target, such as http://127.0.0.1:4318 (over gRPC :4317); spans are off when unset.
        otlp_protocol: http/protobuf, or grpc, which needs the extra `otlp-grpc`.
        otlp_headers: Headers for the target, `name=value,name=value`.
        otlp_timeout_seconds: Longest wait for one answer of the target (10 s: OpenTelemetry's own default).
        otlp_deadline_seconds: Spans that could not be delivered for so long are dropped.
        otlp_gzip: Whether bodies are compressed.
        otlp_queue_spans: Spans that may wait; more are dropped and counted.
        otlp_batch_spans: Spans of one body, about (512: the default of OpenTelemetry's batch processor).
        keep_share: Random share of requests whose spans are sent, 0 to 1.
        keep_per_second: Requests whose spans are sent, at most, per second; the random share is shed first, then the
            rules from the last on. 0 for no bound. (1,000: ten times 1% of a worker with 10,000 requests a second.)
        keep_first: So many requests after a worker's start are sent.
        keep_upstream: Whether a caller's sampled flag is followed.
        keep_low_confidence: Answers with less confidence are sent; 0 for none.
        keep_slow_seconds: Per length class, from when a request is slow, as JSON; a class that is left out keeps its
            objective.
        keep_errors: Whether requests that failed are sent.
        keep_degraded: Whether degraded answers are sent.
        keep_unfinished: Whether requests are sent that their worker's death left unfinished.
        keep_low_quality: Whether requests with input of low quality are sent.
        keep_canary_difference: Whether requests are sent that another version of the model answered otherwise.
        keep_drift: Random share of the requests answered while a drift lasts, 0 to 1.
        last_flight_files: Ring files of dead workers that are kept for look-up.
        last_flight_bytes: Bytes that these may take, together.
        archive: Whether rows are kept on disk, in `<state_dir>/archive`, for look-ups hours later.
        archive_rows: Rows of one segment, at most; also what sealing may hold in memory.
        archive_seconds: Longest time that rows wait for being sealed into a segment.
        archive_bytes: Bytes of all segments, at most; about 120 a row of a service with seven stages.
        archive_hours: Segments whose last request ended earlier are removed.
        model_dir: Folder of the model (`INFERDECK_SERVICE_MODEL_DIR`); the training's reference lies in it.
        drift: Whether live inputs are compared with that reference.
        drift_window: Latest answered requests that are compared, of each feature.
        drift_score: From which distance on it is called drift (0.3: requirements, row A8).
        drift_rows: Fewest requests that a distance is told of.
        drift_seconds: Pause between two looks.
        gpu: Whether GPUs are looked at, by NVML; without a driver the figures say that there is none.
        gpu_seconds: Pause between two looks at the GPUs.
        kernel_model: ONNX file whose kernels are timed on a canary, in this process; unset, none is.
        kernel_seconds: Pause between two windows of the canary; each costs about 0.1 s of CPU.
    """

    model_config = SettingsConfigDict(
        env_prefix="INFERDECK_EXPORTER_", extra="ignore", populate_by_name=True, env_ignore_empty=True
    )

    ring_dir: Path | None = Field(default=None, validation_alias=AliasChoices("INFERDECK_RING_DIR", "ring_dir"))
    state_dir: Path = Field(
        default=Path(".inferdeck"),
        validation_alias=AliasChoices("INFERDECK_STATE_DIR", "state_dir"),
    )
    host: str = "127.0.0.1"
    port: int = Field(default=9464, ge=0, le=65535)
    api_token: SecretStr | None = None
    tick_seconds: float = Field(default=1.0, gt=0, le=60)
    state_seconds: float = Field(default=5.0, ge=0, le=600)
    otlp_endpoint: str | None = None
    otlp_protocol: Literal["http/protobuf", "grpc"] = "http/protobuf"
    otlp_headers: SecretStr | None = None
    otlp_timeout_seconds: float = Field(default=10.0, gt=0, le=120)
    otlp_deadline_seconds: float = Field(default=60.0, gt=0, le=3600)
    otlp_gzip: bool = False
    otlp_queue_spans: int = Field(default=50_000, ge=100, le=5_000_000)
    otlp_batch_spans: int = Field(default=512, ge=1, le=50_000)
    keep_share: float = Field(default=0.01, ge=0, le=1)
    keep_per_second: float = Field(default=1000.0, ge=0, le=1_000_000)
    keep_first: int = Field(default=10, ge=0)
    keep_upstream: bool = True
    keep_low_confidence: float = Field(default=0.0, ge=0, le=1)
    keep_slow_seconds: dict[str, float] = Field(default_factory=lambda: {**OBJECTIVES_SECONDS, "unknown": 1.5})
    keep_errors: bool = True
    keep_degraded: bool = True
    keep_unfinished: bool = True
    keep_low_quality: bool = True
    keep_canary_difference: bool = True
    keep_drift: float = Field(default=0.1, ge=0, le=1)
    last_flight_files: int = Field(default=16, ge=0, le=10_000)
    last_flight_bytes: int = Field(default=512 << 20, ge=0)
    archive: bool = True
    archive_rows: int = Field(default=32_768, ge=256, le=1_000_000)
    archive_seconds: float = Field(default=300.0, gt=0, le=86_400)
    archive_bytes: int = Field(default=1 << 30, ge=1 << 16)
    archive_hours: float = Field(default=24.0, gt=0, le=24 * 366)
    model_dir: Path = Field(
        default=Path("build/model"),
        validation_alias=AliasChoices("INFERDECK_SERVICE_MODEL_DIR", "model_dir"),
    )
    drift: bool = True
    drift_window: int = Field(default=2000, ge=10, le=1_000_000)
    drift_score: float = Field(default=0.3, gt=0, le=1)
    drift_rows: int = Field(default=200, ge=1)
    drift_seconds: float = Field(default=5.0, gt=0, le=3600)
    gpu: bool = True
    gpu_seconds: float = Field(default=5.0, gt=0, le=300)
    kernel_model: Path | None = None
    kernel_seconds: float = Field(default=60.0, gt=0, le=3600)

    @field_validator("keep_slow_seconds")
    @classmethod
    def _known_buckets(cls, value: dict[str, float]) -> dict[str, float]:
        """Refuse a length class that does not exist."""
        if unknown := set(value) - set(INPUT_BUCKETS):
            raise ValueError(f"unknown length class {sorted(unknown)[0]!r}; there are {', '.join(INPUT_BUCKETS)}")
        if not all(0 <= seconds < 1e6 for seconds in value.values()):
            raise ValueError("seconds must be from 0 to a million")
        return {**OBJECTIVES_SECONDS, "unknown": 1.5, **value}

    @field_validator("otlp_endpoint")
    @classmethod
    def _http_endpoint(cls, value: str | None) -> str | None:
        """Refuse a target that is no HTTP address; an empty one is none."""
        if not value:
            return None
        if not value.startswith(("http://", "https://")):
            raise ValueError("must start with http:// or https://, such as http://127.0.0.1:4318")
        return value

    @model_validator(mode="after")
    def _guarded(self) -> ExporterSettings:
        """Refuse to show session ids to a network without a token."""
        if not self.loopback and not (self.api_token and self.api_token.get_secret_value()):
            raise ValueError(
                f"host {self.host} is reachable from outside: set INFERDECK_EXPORTER_API_TOKEN, or bind 127.0.0.1"
            )
        return self

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the port."""
        return is_loopback(self.host)

    @property
    def archive_dir(self) -> Path | None:
        """Folder of the archive's segments; None when rows are not archived."""
        return self.state_dir / "archive" if self.archive else None

    def archive_limits(self) -> Limits:
        """Return when rows are sealed, and what is kept of them."""
        return Limits(
            rows=self.archive_rows,
            seconds=self.archive_seconds,
            keep_bytes=self.archive_bytes,
            keep_seconds=self.archive_hours * 3600,
        )

    def keep_rules(self) -> KeepRules:
        """Return the rules that choose which requests' spans are sent."""
        return KeepRules(
            share=self.keep_share,
            slow_seconds=self.keep_slow_seconds,
            low_confidence=self.keep_low_confidence,
            first=self.keep_first,
            upstream=self.keep_upstream,
            drift_share=self.keep_drift,
            canary_difference=self.keep_canary_difference,
            errors=self.keep_errors,
            degraded=self.keep_degraded,
            low_quality=self.keep_low_quality,
            unfinished=self.keep_unfinished,
        )
