"""Settings of the stream, from the environment (`INFERDECK_STREAM_*`)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import AliasChoices, Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

__all__ = ["StreamSettings"]

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,200}")


class StreamSettings(BaseSettings):
    """What can be set; every field is `INFERDECK_STREAM_<FIELD>` unless it says otherwise.

    Attributes:
        state_dir: State folder (`INFERDECK_STATE_DIR`); the stream's own state lies in its `stream`.
        ring_dir: Folder of the rows (`INFERDECK_RING_DIR`), in whose `stream` the messages' rows are; unset, none are.
        host: Address of the metrics.
        port: Port of the metrics; 0 takes a free one.
        folder: Read from this folder of `*.jsonl`, or one file; instead of Kafka.
        brokers: Read from Kafka: `host:port`, with commas between them.
        topic: Topic of the messages.
        group: Consumer group under which offsets are shown.
        partitions: Numbers with commas between them; all of the topic when unset.
        letters_topic: Topic of dead letters; `<topic>.dead` when unset, empty for none.
        windows_topic: Topic of complete windows; `<topic>.windows` when unset, empty for none.
        name: Who sums up, beside other processes with other partitions.
        steps: `path/to/file.py:callable` or `module:callable` with commas between them, each called with every message
            that fits the contract.
        batch_messages: Messages of one batch, at most: of one write of the state.
        message_bytes: Larger messages are dead letters; the contract's have some 2,300 bytes at most.
        grace_seconds: So much later than a window's end the latest message must be before it is complete.
        late_seconds: So long after that it can be corrected; older messages are dead letters.
        future_seconds: So far ahead of this machine's clock a message may be.
        on_time_seconds: A window that is complete so much later than its end and the grace was late.
        keep_hours: Complete windows that are kept, and how far back a part of the source is read that is new.
        letters_bytes: Bytes of the dead letters in the folder, at most.
    """

    model_config = SettingsConfigDict(
        env_prefix="INFERDECK_STREAM_", extra="ignore", populate_by_name=True, frozen=True
    )

    state_dir: Path = Field(
        default=Path(".inferdeck"), validation_alias=AliasChoices("INFERDECK_STATE_DIR", "state_dir")
    )
    ring_dir: Path | None = Field(default=None, validation_alias=AliasChoices("INFERDECK_RING_DIR", "ring_dir"))
    host: str = "127.0.0.1"
    port: int = Field(default=9467, ge=0, le=65535)
    folder: Path | None = None
    brokers: str = ""
    topic: str = "user_queries"
    group: str = "inferdeck"
    partitions: Annotated[tuple[int, ...], NoDecode] = ()
    letters_topic: str | None = None
    windows_topic: str | None = None
    name: str = Field(default="stream", pattern=r"^[A-Za-z0-9._-]{1,64}$")
    steps: Annotated[tuple[str, ...], NoDecode] = ()
    batch_messages: int = Field(default=500, ge=1, le=10_000)
    message_bytes: int = Field(default=16 * 1024, ge=1024, le=1 << 20)
    grace_seconds: float = Field(default=10.0, ge=0, le=3600)
    late_seconds: float = Field(default=3600.0, ge=0, le=86_400)
    future_seconds: float = Field(default=60.0, ge=0, le=86_400)
    on_time_seconds: float = Field(default=60.0, gt=0, le=86_400)
    keep_hours: float = Field(default=24.0, gt=0, le=24 * 14)
    letters_bytes: int = Field(default=16 << 20, ge=1 << 20)

    @field_validator("partitions", "steps", mode="before")
    @classmethod
    def _parted(cls, given: object) -> object:
        """Take texts with commas between them."""
        return [part.strip() for part in given.split(",") if part.strip()] if isinstance(given, str) else given

    @field_validator("topic", "group")
    @classmethod
    def _named(cls, given: str) -> str:
        if _TOPIC.fullmatch(given) is None:
            raise ValueError("must be 1 to 200 letters, digits, '.', '_' and '-'")
        return given

    @model_validator(mode="after")
    def _one_source(self) -> StreamSettings:
        if (self.folder is None) == (not self.brokers):
            raise ValueError("set one of INFERDECK_STREAM_FOLDER and INFERDECK_STREAM_BROKERS")
        return self
