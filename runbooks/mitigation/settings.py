"""Settings of mitigations, from the environment (`INFERDECK_TRIAGE_MITIGATE*`); without any nothing is ever done."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pydantic import AliasChoices, Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from runbooks.pages import Page, load_pages

__all__ = ["MitigationSettings", "known_ids"]


class MitigationSettings(BaseSettings):
    """What can be set; every field is `INFERDECK_TRIAGE_<FIELD>` unless it says otherwise.

    Attributes:
        mitigate: Ids, separated by commas, that may be carried out without a person; each is `safe: true` in its page.
        mitigate_per_hour: How often one id may be carried out, by whomever.
        mitigate_total_per_hour: How often any may be.
        mitigate_recheck_seconds: How long it may take until the alert's expression is no longer true.
        state_dir: The journal lies below it (`INFERDECK_STATE_DIR`).
    """

    model_config = SettingsConfigDict(env_prefix="INFERDECK_TRIAGE_", extra="ignore", populate_by_name=True)

    mitigate: str = ""
    mitigate_per_hour: int = Field(default=2, ge=1, le=60)
    mitigate_total_per_hour: int = Field(default=4, ge=1, le=240)
    # The longest window of the rules whose page has a mitigation is 1 minute, and a restart takes some seconds.
    mitigate_recheck_seconds: float = Field(default=90.0, ge=1, le=3600)
    state_dir: Path = Field(
        default=Path(".inferdeck"), validation_alias=AliasChoices("INFERDECK_STATE_DIR", "state_dir")
    )

    @field_validator("state_dir", mode="before")
    @classmethod
    def _never_the_working_folder(cls, value: object) -> object:
        return value or Path(".inferdeck")

    @field_validator("mitigate")
    @classmethod
    def _known_and_safe(cls, value: str) -> str:
        """Refuse at the start what would be refused in the incident."""
        safe = known_ids(load_pages().values())
        for one in _split(value):
            if one not in safe:
                raise ValueError(f"{one!r} is in no page; the pages have {', '.join(sorted(safe)) or 'none'}")
            if not safe[one]:
                raise ValueError(f"{one!r} is not marked safe in its page: only a person may carry it out")
        return value

    @property
    def enabled(self) -> frozenset[str]:
        """The ids that are switched on."""
        return frozenset(_split(self.mitigate))

    @property
    def folder(self) -> Path:
        """Where the journal is."""
        return self.state_dir.expanduser().absolute() / "mitigations"


def known_ids(pages: Iterable[Page]) -> dict[str, bool]:
    """Return id -> whether it is safe; one that is not safe everywhere is not safe."""
    found: dict[str, bool] = {}
    for page in pages:
        for one in page.mitigations:
            if one.id:
                found[one.id] = found.get(one.id, True) and one.safe
    return found


def _split(value: str) -> list[str]:
    return [one.strip() for one in value.split(",") if one.strip()]
