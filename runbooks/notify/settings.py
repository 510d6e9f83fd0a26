"""Settings of the follow-ups, from the environment (`INFERDECK_NOTIFY_*`); without any nothing is ever sent."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from exporters.serving import CannotStartError

__all__ = ["NotifySettings", "load_notify_settings"]

_SECRET_URLS: Final = ("slack_url", "dingtalk_url", "feishu_url", "webhook_url")
_SHOWN_URLS: Final = ("grafana_url", "grafana_api_url", "jaeger_url", "triage_url")


class NotifySettings(BaseSettings):
    """What can be set; every field is `INFERDECK_NOTIFY_<FIELD>` unless it says otherwise.

    Addresses of chat programs are secrets: whoever knows one can post there.

    Attributes:
        slack_url: Incoming webhook of Slack.
        dingtalk_url: Webhook of a DingTalk robot.
        dingtalk_secret: For a robot with signature.
        feishu_url: Webhook of a Feishu or Lark bot.
        feishu_secret: For a bot with signature.
        webhook_url: Any webhook that takes JSON.
        webhook_token: Bearer token for it.
        email_to: Addresses, separated by `;` or `,`.
        email_from: The sender's address.
        smtp_host: Mail server.
        smtp_port: Its port.
        smtp_user: For servers that ask who one is.
        smtp_password: Of the user.
        smtp_starttls: Encrypt first; may only be off where there is no user.
        grafana_url: Grafana, as a reader's browser knows it.
        grafana_api_url: Grafana, as this service reaches it; by default the same.
        grafana_token: Token of a service account that may write annotations; without it there are links alone.
        jaeger_url: Jaeger, as a reader's browser knows it (`INFERDECK_JAEGER_URL`).
        triage_url: This service, as a reader's browser knows it.
        runbook_url: What stands before `runbooks/<AlertName>.md` (`INFERDECK_RUNBOOK_URL`); by default this service.
        service: Name of the watched service (`INFERDECK_SERVICE`).
        most_waiting: Messages that may wait, per channel.
        most_tries: Tries of one message.
    """

    model_config = SettingsConfigDict(env_prefix="INFERDECK_NOTIFY_", extra="ignore", populate_by_name=True)

    slack_url: SecretStr = SecretStr("")
    dingtalk_url: SecretStr = SecretStr("")
    dingtalk_secret: SecretStr = SecretStr("")
    feishu_url: SecretStr = SecretStr("")
    feishu_secret: SecretStr = SecretStr("")
    webhook_url: SecretStr = SecretStr("")
    webhook_token: SecretStr = SecretStr("")
    email_to: str = ""
    email_from: str = ""
    smtp_host: str = ""
    smtp_port: int = Field(default=25, ge=1, le=65535)
    smtp_user: str = ""
    smtp_password: SecretStr = SecretStr("")
    smtp_starttls: bool = True
    grafana_url: str = ""
    grafana_api_url: str = ""
    grafana_token: SecretStr = SecretStr("")
    jaeger_url: str = Field(default="", validation_alias=AliasChoices("INFERDECK_JAEGER_URL", "jaeger_url"))
    triage_url: str = ""
    runbook_url: str = Field(default="", validation_alias=AliasChoices("INFERDECK_RUNBOOK_URL", "runbook_url"))
    service: str = Field(default="sentiment", validation_alias=AliasChoices("INFERDECK_SERVICE", "service"))
    most_waiting: int = Field(default=100, ge=1, le=10_000)
    most_tries: int = Field(default=7, ge=1, le=20)

    @field_validator(*_SECRET_URLS, *_SHOWN_URLS, mode="before")
    @classmethod
    def _an_address_or_none(cls, value: object) -> object:
        """Take the placeholders of Grafana's variables for unset ones, and refuse what is no HTTP address."""
        text = value.get_secret_value() if isinstance(value, SecretStr) else str(value or "")
        if not text:
            return ""
        try:
            parts = urlsplit(text)
            # Reading the port is what checks it.
            known = parts.port is None or parts.port > 0
        except ValueError:
            known = False
        if not known:
            # Neither the text nor what the error says of it is repeated.
            raise ValueError("must be an address that can be read, with a port of 1 to 65535 or none")
        if (parts.hostname or "").endswith(".invalid"):
            return ""
        if parts.scheme not in ("http", "https") or not parts.hostname:
            # The text itself may be a secret, and is not repeated.
            raise ValueError("must be an address that starts with http:// or https://")
        return text

    @field_validator(*_SHOWN_URLS, "runbook_url", mode="after")
    @classmethod
    def _fit_for_a_message(cls, value: str) -> str:
        """Refuse a password in an address that stands in every message."""
        if urlsplit(value).password:
            raise ValueError("must hold no password: it would stand in every message")
        return value

    @field_validator("email_to", mode="after")
    @classmethod
    def _not_the_placeholder(cls, value: str) -> str:
        """Take Grafana's placeholder for unset."""
        return "" if value.endswith(".invalid") else value

    @model_validator(mode="after")
    def _mail_is_whole(self) -> NotifySettings:
        """Refuse half an e-mail, and a password over an open line."""
        if self.addresses and not (self.smtp_host and self.email_from):
            raise ValueError("e-mail needs INFERDECK_NOTIFY_SMTP_HOST and INFERDECK_NOTIFY_EMAIL_FROM as well")
        if self.smtp_user and not self.smtp_starttls:
            raise ValueError("a password is not sent over an open line: set INFERDECK_NOTIFY_SMTP_STARTTLS=true")
        return self

    @property
    def addresses(self) -> tuple[str, ...]:
        """The e-mail addresses."""
        return tuple(one.strip() for one in self.email_to.replace(",", ";").split(";") if one.strip())


def load_notify_settings() -> NotifySettings:
    """Return the settings of the environment.

    Raises:
        CannotStartError: With the variable and the mend, never with its value.
    """
    try:
        return NotifySettings()
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        variable = f"INFERDECK_NOTIFY_{name.upper()}: " if name.islower() else f"{name}: " if name else ""
        raise CannotStartError(f"{variable}{first['msg'].removeprefix('Value error, ')}") from error
