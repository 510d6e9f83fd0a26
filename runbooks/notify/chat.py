"""The bodies that Slack, DingTalk, Feishu and a plain webhook take, and how each says no.

Slack     https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks: text and blocks; "ok", or a 4xx
          with a word such as invalid_payload. A header holds 150 characters, a section's text 3,000.
DingTalk  https://open.dingtalk.com/document/robots/custom-robot-access: markdown; always HTTP 200, `errcode` 0 is well,
          130101 and 410100 "too fast" (20 messages a minute). Signed: timestamp in ms and HMAC-SHA256 in the query.
Feishu    https://open.feishu.cn/document/client-docs/bot-v3/add-custom-bot: interactive card; `code` 0 is well, 11232
          too fast, 19021 wrong signature. Signed: timestamp in s and HMAC-SHA256 in the body. At most 20 kB.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote_plus

from runbooks.notify.message import Message
from runbooks.notify.outcome import Outcome, Request, by_status, refused, retry, sent

__all__ = ["dingtalk", "dingtalk_said", "feishu", "feishu_said", "plain", "slack"]

_SLACK_HEADER: Final = 150
_SLACK_SECTION: Final = 3000
# DingTalk's own words: 20 messages a minute, then ten minutes of silence for who goes on.
_MINUTE: Final = 60.0
_TOO_FAST: Final = frozenset({130101, 410100, 11232})
Clock = Callable[[], float]


def slack(message: Message, url: str) -> Request:
    """Return the request to an incoming webhook of Slack.

    Args:
        message: What to say.
        url: The webhook.
    """
    lines = [f"*{name}*: {_slack_text(said)}" for name, said in message.lines]
    links = [f"*{name}*: {_slack_link(said)}" for name, said in message.links]
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": message.title[:_SLACK_HEADER], "emoji": False}},
        *({"type": "section", "text": {"type": "mrkdwn", "text": text}} for text in _sections([*lines, *links])),
    ]
    # `text` is what a notification on a phone shows.
    return _json(url, {"text": _slack_text(f"{message.title}. {dict(message.lines)['Impact']}"), "blocks": blocks})


def _slack_text(text: str) -> str:
    """Return a text whose `<!channel>` calls nobody."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _slack_link(text: str) -> str:
    safe = _slack_text(text).replace("|", "%7C")
    return f"<{safe}>" if text.startswith(("http://", "https://")) else _slack_text(text)


def _sections(lines: list[str]) -> list[str]:
    """Return the lines in as few sections as fit; none of them is longer than one."""
    sections = [""]
    for line in lines:
        joined = f"{sections[-1]}\n{line}".strip()
        if len(joined) <= _SLACK_SECTION:
            sections[-1] = joined
        else:
            sections.append(line[:_SLACK_SECTION])
    return sections


def dingtalk(message: Message, url: str, secret: str, clock: Clock) -> Request:
    """Return the request to a custom robot of DingTalk.

    Args:
        message: What to say.
        url: The webhook, its access token included.
        secret: For robots whose security setting is a signature; empty for none.
        clock: Unix seconds; DingTalk refuses signatures older than an hour.
    """
    if secret:
        stamp = str(round(clock() * 1000))
        url += f"{'&' if '?' in url else '?'}timestamp={stamp}&sign={quote_plus(_signature(secret, stamp))}"
    # Its Markdown joins lines unless an empty one is between them.
    text = f"### {message.title}\n\n{message.text(chr(10) * 2)}"
    return _json(url, {"msgtype": "markdown", "markdown": {"title": message.title, "text": text}})


def _signature(secret: str, stamp: str) -> str:
    told = f"{stamp}\n{secret}".encode()
    return base64.b64encode(hmac.new(secret.encode(), told, hashlib.sha256).digest()).decode()


def dingtalk_said(status: int, body: bytes, retry_after: str) -> Outcome:
    """Return what DingTalk's answer means."""
    return _coded(status, body, retry_after, "errcode", "errmsg")


def feishu(message: Message, url: str, secret: str, clock: Clock) -> Request:
    """Return the request to a custom bot of Feishu or Lark.

    Args:
        message: What to say.
        url: The webhook.
        secret: For bots with signature verification; empty for none.
        clock: Unix seconds; Feishu refuses signatures older than an hour.
    """
    signed: dict[str, Any] = {}
    if secret:
        stamp = str(int(clock()))
        # The key is "timestamp, newline, secret" and what is signed is empty: so it is documented.
        digest = hmac.new(f"{stamp}\n{secret}".encode(), b"", hashlib.sha256).digest()
        signed = {"timestamp": stamp, "sign": base64.b64encode(digest).decode()}
    card = {
        "config": {"wide_screen_mode": True},
        "header": {
            "title": {"tag": "plain_text", "content": message.title},
            "template": "red" if message.slug else "orange",
        },
        "elements": [{"tag": "markdown", "content": message.text()}],
    }
    return _json(url, {**signed, "msg_type": "interactive", "card": card})


def feishu_said(status: int, body: bytes, retry_after: str) -> Outcome:
    """Return what Feishu's answer means; its older form says StatusCode."""
    return _coded(status, body, retry_after, "code", "msg", "StatusCode", "StatusMessage")


def _coded(status: int, body: bytes, retry_after: str, *keys: str) -> Outcome:
    """Judge an answer whose code, in the body, decides: these receivers say 200 when they refuse."""
    found = by_status(status, _text(body), retry_after)
    if found.state != "sent":
        return found
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    if not isinstance(answer, Mapping):
        return refused(f"an answer that is none of its own: {_text(body)}")
    for code_key, text_key in zip(keys[::2], keys[1::2], strict=True):
        if code_key in answer:
            code, said = answer[code_key], f"{code_key} {answer[code_key]}: {str(answer.get(text_key))[:120]}"
            if code == 0:
                return sent()
            return retry(said, _MINUTE) if code in _TOO_FAST else refused(said)
    return refused(f"an answer without {keys[0]}: {_text(body)}")


def plain(message: Message, url: str, token: str) -> Request:
    """Return the request to any webhook: the message as JSON.

    Args:
        message: What to say.
        url: Where to.
        token: Bearer token; empty for none.
    """
    body = {
        "version": "inferdeck/1",
        "event": message.event,
        "title": message.title,
        "alert": message.alert or None,
        "verdict": {"slug": message.slug, "layer": message.layer, "confidence": message.confidence},
        "onset_unix": message.onset_unix,
        "report": message.report,
        "lines": [{"name": name, "text": said} for name, said in message.lines],
        "links": [{"name": name, "text": said} for name, said in message.links],
    }
    request = _json(url, body)
    authorization = (("Authorization", f"Bearer {token}"),) if token else ()
    return Request(url, request.body, (*request.headers, *authorization))


def _json(url: str, body: Mapping[str, Any]) -> Request:
    # Half a surrogate pair in a label must not cost the message.
    return Request(url, json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"))


def _text(body: bytes) -> str:
    return " ".join(body[:200].decode("utf-8", "replace").split())
