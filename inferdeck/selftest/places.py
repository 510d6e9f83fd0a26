"""Where the parts are: as the running stack wrote down, else where the settings expect them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from inferdeck.look_up import ring_folder
from inferdeck.selftest.link import Broken, LinkAbsent
from inferdeck.settings import StackSettings
from inferdeck.stack.state import read_state

__all__ = ["Places", "find_places"]

PORT_OF_PART = {
    "service": "service_port",
    "exporter": "exporter_port",
    "triage": "triage_port",
    "prometheus": "prometheus_port",
    "alertmanager": "alertmanager_port",
}


@dataclass(frozen=True)
class Places:
    """Where each part is.

    Attributes:
        urls: Base URL of each part that should be there.
        left_out: Why a part is not.
        recorded: Whether a stack wrote them down; else they are where the settings say, if they are at all.
        ring_dir: Folder of the rows.
    """

    urls: dict[str, str]
    left_out: dict[str, str]
    recorded: bool
    ring_dir: Path

    def url(self, part: str) -> str:
        """Return the base URL of *part*.

        Raises:
            LinkAbsent: If it is not part of this stack.
        """
        if part in self.left_out:
            raise LinkAbsent(f"{part} is not part of this stack: {self.left_out[part]}", "")
        return self.urls[part]

    def silent(self, part: str, error: Exception) -> Broken:
        """Return what it means that *part* does not answer."""
        if self.recorded or part == "service":
            return Broken(f"{part} does not answer: {error}", "`inferdeck status` shows it and its log; `inferdeck up`")
        # without a record nobody promised that it runs: a service alone is a use of ours as well
        return LinkAbsent(f"no stack is recorded, and {part} is not at {self.urls[part]}", "`inferdeck up` starts one")


def find_places(settings: StackSettings) -> Places:
    """Return where the parts of the stack of these settings are.

    Args:
        settings: Folders and ports.
    """
    state = read_state(settings.state_path)
    ring_dir = ring_folder(settings)
    # a record of a stack that was stopped promises nothing either
    if state is None or not state.live_parts():
        urls = {part: f"http://{settings.host}:{settings.ports[port]}" for part, port in PORT_OF_PART.items()}
        return Places(urls, {}, recorded=False, ring_dir=ring_dir)
    return Places(
        {part.name: part.url for part in state.parts},
        {part.name: part.left_out for part in state.parts if part.left_out is not None},
        recorded=True,
        ring_dir=ring_dir,
    )
