"""A follow-up by e-mail, spoken with a small SMTP server on this machine."""

from __future__ import annotations

import email
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.policy import default
from typing import Any

import pytest

from runbooks.notify.mail import Mailbox, mail, send_mail
from tests.runbooks.notify.conftest import message

NOW = datetime(2026, 11, 30, 8, 3, tzinfo=UTC)


@dataclass
class Server:
    """Speaks one conversation; each answer can be replaced by its command."""

    port: int = 0
    replies: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    letters: list[str] = field(default_factory=list)

    def box(self, **changes: Any) -> Mailbox:
        """Return a mailbox that leads here."""
        known: dict[str, Any] = {
            "to": ("a@example.org", "b@example.org"),
            "sender": "inferdeck@example.org",
            "host": "127.0.0.1",
            "port": self.port,
            "starttls": False,
        }
        return Mailbox(**known | changes)


@pytest.fixture
def server() -> Iterator[Server]:
    """An SMTP server (RFC 5321) that takes everything unless told otherwise."""
    known = Server()
    listener = socket.create_server(("127.0.0.1", 0))
    known.port = listener.getsockname()[1]

    def speak() -> None:
        connection, _ = listener.accept()
        with connection, connection.makefile("rwb") as line:

            def answer(text: str) -> None:
                line.write(f"{text}\r\n".encode())
                line.flush()

            answer(known.replies.get("hello", "220 here"))
            while raw := line.readline():
                command = raw.decode().strip()
                known.said.append(command)
                verb = command.split(" ")[0].split(":")[0].upper()
                if verb == "DATA" and "DATA" not in known.replies:
                    answer("354 go on")
                    letter = b""
                    while (part := line.readline()) != b".\r\n":
                        letter += part[1:] if part.startswith(b"..") else part
                    known.letters.append(letter.decode())
                    answer(known.replies.get("END", "250 taken"))
                    continue
                answer(known.replies.get(verb, "221 bye" if verb == "QUIT" else "250 well"))
                if verb == "QUIT":
                    return

    thread = threading.Thread(target=speak, daemon=True)
    thread.start()
    yield known
    listener.close()
    thread.join(5)


def test_a_letter_is_whole() -> None:
    """Subject, both addresses, a date, an id, and the mark by which nobody's absence note answers."""
    letter = mail(message(), Mailbox(("a@example.org", "b@example.org"), "inferdeck@example.org", "h"), NOW)

    assert message().title == letter["Subject"]
    assert "a@example.org, b@example.org" == letter["To"]
    assert "Mon, 30 Nov 2026 08:03:00 +0000" == letter["Date"]
    assert letter["Message-ID"].endswith("@example.org>")
    assert "auto-generated" == letter["Auto-Submitted"]
    assert f"{message().text()}\n" == letter.get_content()


def test_a_letter_is_sent_and_read_the_same(server: Server) -> None:
    """Chinese text and a line that starts with a dot included."""
    told = message(verdict={"slug": None, "layer": None, "confidence": 0.0, "summary": "。慢"}, abstained=True)
    outcome = send_mail(told, server.box())

    assert "sent" == outcome.state
    (letter,) = server.letters
    parsed = email.message_from_string(letter, policy=default)
    assert told.title == parsed["Subject"]
    assert "Summary: 。慢" in parsed.get_content()
    assert ["a@example.org", "b@example.org"] == [
        said.split("<")[1].split(">")[0] for said in server.said if said.upper().startswith("RCPT")
    ]


@pytest.mark.parametrize(
    ("replies", "state", "said"),
    [
        ({"hello": "421 too busy"}, "retry", "SMTP 421 (SMTPConnectError)"),
        ({"MAIL": "550 not you"}, "refused", "SMTP 550 (SMTPSenderRefused)"),
        ({"RCPT": "550 no such user"}, "refused", "SMTP 550 (no recipient was taken)"),
        ({"RCPT": "450 greylisted"}, "retry", "SMTP 450 (no recipient was taken)"),
        ({"END": "554 spam"}, "refused", "SMTP 554 (SMTPDataError)"),
        ({"END": "451 later"}, "retry", "SMTP 451 (SMTPDataError)"),
    ],
)
def test_a_servers_code_says_no_or_later(server: Server, replies: dict[str, str], state: str, said: str) -> None:
    """4yz is tried again, 5yz is final."""
    server.replies = replies
    outcome = send_mail(message(), server.box())

    assert (state, said) == (outcome.state, outcome.detail)


def test_a_server_without_encryption_is_refused_before_anything_is_said(server: Server) -> None:
    """Neither a password nor a message goes over an open line unless it is told to."""
    outcome = send_mail(message(), server.box(starttls=True, user="me", password="secret"))  # noqa: S106  # made up

    assert "refused" == outcome.state
    assert "INFERDECK_NOTIFY_SMTP_STARTTLS" in outcome.detail
    assert [] == server.letters
    assert not [said for said in server.said if said.upper().startswith("AUTH")]


def test_a_server_that_is_down_is_asked_again_later() -> None:
    """Its address is told, and nothing else."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    box = Mailbox(("a@example.org",), "b@example.org", "127.0.0.1", port, starttls=False)

    assert f"127.0.0.1:{port} cannot be reached (ConnectionRefusedError)" == send_mail(message(), box).detail
