"""The little of a request's row that the service writes, and what stands in where no recorder is attached."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import Final, Protocol

__all__ = ["NO_RECORD", "Attribute", "RequestRecord", "StageHandle"]

Attribute = int | float | bool | str


class StageHandle(Protocol):
    """A running stage."""

    def set(self, **attributes: Attribute) -> None:
        """Set attributes of the stage."""


class RequestRecord(Protocol):
    """A request's row; `probes.Record` is one. Its methods work from any thread."""

    def stage(self, name: str, /, **attributes: Attribute) -> AbstractContextManager[StageHandle]:
        """Enter a stage of the request."""

    def set(self, **attributes: Attribute) -> None:
        """Set attributes of the request itself."""

    def refused(self, reason: str) -> None:
        """Say why the request is refused."""

    def degraded(self, reason: str) -> None:
        """Say why the request gets a degraded answer."""

    def low_quality(self) -> None:
        """Mark the request's input as one of low quality."""


class _NoStage:
    def __enter__(self) -> _NoStage:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def set(self, **attributes: Attribute) -> None:
        """Forget the attributes."""


class _NoRecord:
    """Takes everything and keeps nothing, so that the request path needs no question whether a recorder is there."""

    _stage: Final = _NoStage()

    def stage(self, _name: str, /, **_attributes: Attribute) -> AbstractContextManager[StageHandle]:
        """Return the stage that keeps nothing."""
        return self._stage

    def set(self, **attributes: Attribute) -> None:
        """Forget the attributes."""

    def refused(self, reason: str) -> None:
        """Forget the reason."""

    def degraded(self, reason: str) -> None:
        """Forget the reason."""

    def low_quality(self) -> None:
        """Forget the mark."""


NO_RECORD: Final[RequestRecord] = _NoRecord()
