"""What triage asks Prometheus about a model's sessions and the memory of its device."""

from __future__ import annotations

from typing import Final

__all__ = ["DUPLICATE_SESSIONS", "FREE_MEMORY", "MEMORY_QUERIES", "MEMORY_SHORT", "OPEN_SESSIONS"]

OPEN_SESSIONS: Final = "model_open_sessions"
DUPLICATE_SESSIONS: Final = "model_duplicate_sessions"
MEMORY_SHORT: Final = "model_memory_short_total"
FREE_MEMORY: Final = "model_memory_free_bytes"

MEMORY_QUERIES: Final = (OPEN_SESSIONS, DUPLICATE_SESSIONS, MEMORY_SHORT, FREE_MEMORY)
