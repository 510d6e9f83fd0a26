"""The contract with each receiver: the body it documents, and each of its ways to say no.

Shapes as in the receivers' own pages (named in runbooks/notify/chat.py), read on 2026-11-30.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbooks.notify.chat import dingtalk, dingtalk_said, feishu, feishu_said, plain, slack
from runbooks.notify.message import Message
from runbooks.notify.outcome import Request, by_status
from tests.runbooks.notify.conftest import message

NOW = 1_796_025_780.25


def body(request: Request) -> Any:
    """Return a request's JSON."""
    return json.loads(request.body)


def test_slack_gets_a_text_for_the_phone_and_blocks_for_the_channel() -> None:
    """A header of plain text, then sections of mrkdwn in which links are links."""
    said = body(slack(message(), "https://hooks.slack.example/x"))

    assert {"text", "blocks"} == said.keys()
    assert said["text"].startswith("inferdeck: EventLoopBlocked: event_loop_blocked. 84 of 1200 requests bad")
    assert {"type": "header", "text": {"type": "plain_text", "text": message().title, "emoji": False}} == (
        said["blocks"][0]
    )
    (section,) = said["blocks"][1:]
    assert ("section", "mrkdwn") == (section["type"], section["text"]["type"])
    assert "*Runbook*: <http://triage.example/runbooks/EventLoopBlocked.md>" in section["text"]["text"]
    assert "lookback=custom&amp;start=" in section["text"]["text"]


def test_slack_calls_nobody_by_a_text_from_outside() -> None:
    """`<!channel>` is text."""
    said = body(slack(message(alert="<!channel>"), "https://x"))
    read_as_mrkdwn = [said["text"], *(one["text"]["text"] for one in said["blocks"][1:])]

    assert all("<!channel>" not in text and "&lt;!channel&gt;" in text for text in read_as_mrkdwn)
    assert "plain_text" == said["blocks"][0]["text"]["type"]


texts = st.text(max_size=700)


@given(st.lists(st.tuples(st.sampled_from(["A", "B"]), texts), max_size=30), texts)
def test_slacks_limits_hold_for_any_message(lines: list[tuple[str, str]], title: str) -> None:
    """150 characters in a header, 3,000 in a section, 50 blocks; only a single line that is too long is cut."""
    known = Message(title, (*lines, ("Impact", "x")), (), "a", None, None, 0.0, 0.0, None)
    blocks = body(slack(known, "https://x"))["blocks"]

    assert len(blocks) <= 50
    assert all(len(one["text"]["text"]) <= (150 if one["type"] == "header" else 3000) for one in blocks)


def test_dingtalk_gets_markdown_with_an_empty_line_between_lines() -> None:
    """Without a secret the address is as given."""
    request = dingtalk(message(), "https://oapi.example/robot/send?access_token=t", "", lambda: NOW)
    said = body(request)

    assert "https://oapi.example/robot/send?access_token=t" == request.url
    assert ("markdown", {"title", "text"}) == (said["msgtype"], said["markdown"].keys())
    assert said["markdown"]["text"].startswith(
        "### inferdeck: EventLoopBlocked: event_loop_blocked\n\nVerdict: event_loop_blocked (layer runtime, "
        "confidence 0.97)\n\nSummary: "
    )


def test_dingtalks_signature_is_in_the_query() -> None:
    """HMAC-SHA256 of "timestamp, newline, secret" under the secret, base64, quoted; the timestamp in milliseconds."""
    request = dingtalk(message(), "https://oapi.example/robot/send?access_token=t", "SEC+/=", lambda: NOW)
    query = parse_qs(urlsplit(request.url).query)
    digest = hmac.new(b"SEC+/=", b"1796025780250\nSEC+/=", hashlib.sha256).digest()

    assert {"access_token": ["t"], "timestamp": ["1796025780250"], "sign": [base64.b64encode(digest).decode()]} == query
    assert "SEC" not in request.url


def test_feishu_gets_a_card() -> None:
    """An interactive card with a title and one element of Markdown."""
    said = body(feishu(message(), "https://open.example/hook/x", "", lambda: NOW))

    assert {"msg_type", "card"} == said.keys()
    assert ("interactive", "red") == (said["msg_type"], said["card"]["header"]["template"])
    assert {"tag": "plain_text", "content": message().title} == said["card"]["header"]["title"]
    assert [{"tag": "markdown", "content": message().text()}] == said["card"]["elements"]


def test_feishus_signature_is_in_the_body() -> None:
    """HMAC-SHA256 of nothing under "timestamp, newline, secret", base64; the timestamp in seconds, as text."""
    said = body(feishu(message(), "https://x", "secret", lambda: NOW))
    digest = hmac.new(b"1796025780\nsecret", b"", hashlib.sha256).digest()

    assert ("1796025780", base64.b64encode(digest).decode()) == (said["timestamp"], said["sign"])


def test_a_webhook_gets_the_message_as_json_with_a_token() -> None:
    """A version first, so that who reads it can refuse another."""
    request = plain(message(), "https://x", "secret-token")
    said = body(request)

    assert "inferdeck/1" == said["version"]
    assert {"slug": "event_loop_blocked", "layer": "runtime", "confidence": 0.97} == said["verdict"]
    assert {"name": "Ask again", "text": "inferdeck triage --alert EventLoopBlocked"} in said["lines"]
    assert ("Authorization", "Bearer secret-token") in request.headers
    assert "Authorization" not in dict(plain(message(), "https://x", "").headers)


@pytest.mark.parametrize("make", [dingtalk, feishu])
def test_a_long_message_stays_under_what_they_take(make: Any) -> None:
    """20 kB, also where each character is three bytes."""
    lines = tuple((name, "字" * 600) for name in ("Verdict", "Summary", "Impact", "Because", "Ask again"))
    links = tuple((name, "x" * 1000) for name in ("Runbook", "Dashboard", "Traces", "W", "W", "W", "Report"))
    long = Message("字" * 600, lines, links, "a", "b", "runtime", 1.0, 0.0, None)

    assert len(make(long, "https://x", "secret", lambda: NOW).body) < 20_000 + 1_800


def test_half_a_surrogate_pair_costs_a_character_and_not_the_message() -> None:
    """A label from outside may hold one."""
    known = Message("\ud800", (("Impact", "\udfff"),), (), "a", None, None, 0.0, 0.0, None)

    assert b"?" in slack(known, "https://x").body


@pytest.mark.parametrize(
    ("said", "state", "wait"),
    [
        ({"errcode": 0, "errmsg": "ok"}, "sent", 0.0),
        ({"errcode": 130101, "errmsg": "send too fast, exceed 20 times per minute"}, "retry", 60.0),
        ({"errcode": 310000, "errmsg": "keywords not in content"}, "refused", 0.0),
        ({"errcode": 300001, "errmsg": "token is not exist"}, "refused", 0.0),
        ({"success": True}, "refused", 0.0),
        ([], "refused", 0.0),
    ],
)
def test_dingtalk_refuses_with_status_200(said: Any, state: str, wait: float) -> None:
    """Its code decides, and is told."""
    outcome = dingtalk_said(200, json.dumps(said).encode(), "")

    assert (state, wait) == (outcome.state, outcome.wait_seconds)
    if isinstance(said, dict) and said.get("errcode"):
        assert f"errcode {said['errcode']}: {said['errmsg']}" == outcome.detail


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ({"code": 0, "msg": "success", "data": {}}, "sent"),
        ({"StatusCode": 0, "StatusMessage": "success", "Extra": None}, "sent"),
        ({"code": 19021, "msg": "sign match fail or timestamp is not within one hour"}, "refused"),
        ({"code": 19024, "msg": "Key Words Not Found"}, "refused"),
        ({"code": 11232, "msg": "frequency limited"}, "retry"),
    ],
)
def test_feishu_refuses_with_status_200(said: Any, state: str) -> None:
    """In its newer and its older form."""
    assert state == feishu_said(200, json.dumps(said).encode(), "").state


def test_an_answer_of_a_proxy_is_not_taken_for_a_receipt() -> None:
    """A login page with status 200 means that nobody was told."""
    assert "refused" == feishu_said(200, b"<html>log in</html>", "").state
    assert "retry" == feishu_said(502, b"<html>bad gateway</html>", "").state


@pytest.mark.parametrize(
    ("status", "after", "state", "wait"),
    [
        (200, "", "sent", 0.0),
        (204, "", "sent", 0.0),
        (302, "", "refused", 0.0),
        (400, "", "refused", 0.0),
        (403, "9", "refused", 0.0),
        (404, "", "refused", 0.0),
        (408, "", "retry", 0.0),
        (410, "", "refused", 0.0),
        (429, "30", "retry", 30.0),
        (429, "86400", "retry", 300.0),
        (429, "Wed, 21 Oct 2026 07:28:00 GMT", "retry", 0.0),
        (500, "", "retry", 0.0),
        (503, "2", "retry", 2.0),
    ],
)
def test_a_status_says_no_or_later(status: int, after: str, state: str, wait: float) -> None:
    """4xx is final but for those that say later, 5xx is not; a redirection would carry the message to somebody else."""
    outcome = by_status(status, " invalid_payload \n", after)

    assert (state, wait) == (outcome.state, outcome.wait_seconds)
    assert ("" if state == "sent" else f"HTTP {status}: invalid_payload") == outcome.detail
