"""A follow-up as an e-mail, by the standard library's SMTP."""

from __future__ import annotations

import smtplib
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, make_msgid
from typing import Final

from runbooks.notify.message import Message
from runbooks.notify.outcome import Outcome, refused, retry, sent

__all__ = ["Mailbox", "mail", "send_mail"]

_SECONDS: Final = 15.0


@dataclass(frozen=True)
class Mailbox:
    """Where e-mails go and how.

    Attributes:
        to: Addresses.
        sender: Address of the sender.
        host: SMTP server.
        port: Its port.
        user: For those that ask who one is; empty for none.
        password: Of *user*.
        starttls: Whether the line is encrypted before anything is said; needed with a user.
    """

    to: tuple[str, ...]
    sender: str
    host: str
    port: int = 25
    user: str = ""
    password: str = ""
    starttls: bool = True


def mail(message: Message, box: Mailbox, now: datetime | None = None) -> EmailMessage:
    """Return the e-mail.

    Args:
        message: What to say.
        box: Who to say it to.
        now: Its date.
    """
    letter = EmailMessage(policy=SMTP)
    letter["Subject"] = message.title
    letter["From"] = box.sender
    letter["To"] = ", ".join(box.to)
    letter["Date"] = format_datetime(now or datetime.now(UTC))
    letter["Message-ID"] = make_msgid(domain=Address(addr_spec=box.sender).domain or "inferdeck.invalid")
    # Programs that answer "out of office" leave those alone that say so (RFC 3834).
    letter["Auto-Submitted"] = "auto-generated"
    letter.set_content(message.text("\n") + "\n", charset="utf-8")
    return letter


def send_mail(message: Message, box: Mailbox) -> Outcome:
    """Send the e-mail and return what became of it.

    Args:
        message: What to say.
        box: Where to and how.
    """
    try:
        with smtplib.SMTP(box.host, box.port, timeout=_SECONDS) as server:
            if box.starttls:
                server.starttls(context=ssl.create_default_context())
            if box.user:
                server.login(box.user, box.password)
            missed = server.send_message(mail(message, box))
    except smtplib.SMTPRecipientsRefused as error:
        codes = [code for code, _ in error.recipients.values()]
        return _by_code(max(codes, default=550), "no recipient was taken")
    except smtplib.SMTPResponseException as error:
        # The server's words may repeat what we said, a password included: only its code is told.
        return _by_code(error.smtp_code, type(error).__name__)
    except (smtplib.SMTPNotSupportedError, ssl.SSLCertVerificationError) as error:
        return refused(f"{box.host}:{box.port}: {type(error).__name__}; see INFERDECK_NOTIFY_SMTP_STARTTLS")
    except (smtplib.SMTPException, OSError) as error:
        return retry(f"{box.host}:{box.port} cannot be reached ({type(error).__name__})")
    return refused(f"{len(missed)} of {len(box.to)} recipients were refused") if missed else sent()


def _by_code(code: int, what: str) -> Outcome:
    """Judge an SMTP code: 4yz is "later", 5yz is "no" (RFC 5321, 4.2.1)."""
    said = f"SMTP {code} ({what})"
    return retry(said) if 400 <= code < 500 else refused(said)
