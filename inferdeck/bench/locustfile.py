"""Users of the service under load: real reviews of mixed length, a pause between two, a session each.

    locust -f inferdeck/bench/locustfile.py --headless --users 50 --spawn-rate 25 --run-time 60s --host http://127.0.0.1:8080

Of ten users two send long reviews only. A user who is told to come back (429) is no failure of the service.
`inferdeck bench users` runs 10, 50 and 100 of them against a service of its own and tells times, errors and memory.
"""

from __future__ import annotations

import random
import secrets
from typing import Any, Final

from locust import FastHttpUser, between, events, task

from service.text.contract import MAX_CHARACTERS, to_contract
from service.training.corpus import review_texts

_LONG: Final = 500


def _load(environment: Any, **_more: Any) -> None:
    """Read the reviews once, before the first user comes."""
    texts = [text for text in map(to_contract, review_texts(2000, 1)) if text]
    environment.texts = texts
    environment.long_texts = [text for text in texts if len(text) > _LONG] or [
        " ".join(texts)[at : at + MAX_CHARACTERS - 1] for at in range(0, 20 * MAX_CHARACTERS, MAX_CHARACTERS)
    ]


events.init.add_listener(_load)  # type: ignore[no-untyped-call]


class _User(FastHttpUser):
    abstract = True

    def on_start(self) -> None:
        """Open a session, and pick what the user has."""
        self.headers = {
            "x-session-id": secrets.token_hex(8),
            "x-device-type": random.choice(("mobile", "web", "app")),
            "x-client-release": "4.12.0",
        }

    def judge(self, text: str, name: str) -> None:
        """Ask for one judgement."""
        body = {"text": text, "product_id": "AB12345678"}
        asked = self.client.post("/v1/sentiment", json=body, headers=self.headers, name=name, catch_response=True)
        with asked as answer:
            if answer.status_code == 429:
                answer.success()


class Reader(_User):
    """Sends a review every second or so."""

    weight = 8
    wait_time = between(0.5, 1.5)

    @task
    def review(self) -> None:
        """Send any review."""
        self.judge(random.choice(self.environment.texts), "any review")


class Collector(_User):
    """Sends long reviews."""

    weight = 2
    wait_time = between(1, 3)

    @task
    def long_review(self) -> None:
        """Send a long review."""
        self.judge(random.choice(self.environment.long_texts), "long review")
