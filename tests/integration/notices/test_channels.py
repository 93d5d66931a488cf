"""Channels against real servers on loopback: mail with and without TLS, and webhooks."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.domain.errors import Throttled, Transient
from drivefeed.domain.notices import Happening, Message, Severity, Subscription, Told
from drivefeed.notices.smtp import MailChannel, MailServer
from drivefeed.notices.webhooks import WRITERS, WebhookChannel
from drivefeed.outbound import Outbound
from drivefeed.services.notices import send_within
from support.authority import Authority
from support.clock import NOON, ManualClock
from support.dripping import dripping
from support.mail import PASSWORD, USER, running_mail_server
from support.proxy import running_proxy
from support.receiver import running_receiver

if TYPE_CHECKING:
    from pathlib import Path

DESK = Subscription("desk")
TEAMS_CARD_LIMIT = 28 * 1024


def told(number: int = 1, **changes: Any) -> Told:
    values: dict[str, Any] = {
        "notice_id": f"notice-{number}",
        "happening": Happening.OPENED,
        "kind": "removals",
        "severity": Severity.URGENT,
        "org": "acme",
        "subject": "connection 'Q&A <2027>'",
        "words": "More documents than usual disappeared at once. Details: 61 documents.",
        "remedy": "Check the source, then decide.",
        "command": "drivefeed removals 'Q&A <2027>'",
        "reason": "mass_removal",
        "count": 2,
        "first_at": NOON - 600_000,
        "last_at": NOON,
        "over_at": None,
    }
    return Told(**(values | changes))


OVER = {"happening": Happening.OVER, "over_at": NOON}


def message(*notices: Told, key: str = "notice-1.opened") -> Message:
    return Message(key=key, at=NOON, told=notices or (told(),))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def outbound(authority: Authority, tmp_path: Path) -> Outbound:
    return Outbound().changed(ca_file=str(authority.ca), folder=tmp_path)


def mailing(server: MailServer, outbound: Outbound, *to: str) -> MailChannel:
    to = to or ("ops@acme.example",)
    return MailChannel(
        DESK, server, sender="drivefeed <feed@acme.example>", to=to, outbound=outbound
    )


async def test_a_mail_goes_out_by_starttls_with_a_login(
    authority: Authority, outbound: Outbound
) -> None:
    async with running_mail_server(starttls=authority.server_context("127.0.0.1")) as server:
        reached = MailServer("127.0.0.1", server.port, "starttls", USER, PASSWORD)
        channel = mailing(reached, outbound, "ops@acme.example", "boss@acme.example")
        assert await channel.send(message()) == "250 queued as 1"
    (mail,) = server.mails
    assert server.were_encrypted == [True]
    assert server.logins == [USER]
    assert server.recipients == [["ops@acme.example", "boss@acme.example"]]
    assert mail["Message-ID"] == "<notice-1.opened@acme.example>"
    assert mail["X-Drivefeed-Notices"] == "notice-1"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail["Importance"] == "high"
    assert mail["Subject"] == (
        "[drivefeed] connection 'Q&A <2027>': More documents than usual disappeared at once"
    )
    plain, page = mail.iter_parts()
    text = plain.get_content()
    assert "[urgent] connection 'Q&A <2027>' (acme)" in text
    assert "What to do: Check the source, then decide." in text
    assert "Run: drivefeed removals 'Q&A <2027>'" in text
    assert "<pre>drivefeed removals &#x27;Q&amp;A &lt;2027&gt;&#x27;</pre>" in page.get_content()


async def test_a_mail_goes_out_by_tls_and_plainly(authority: Authority, outbound: Outbound) -> None:
    async with running_mail_server(tls=authority.server_context("127.0.0.1")) as server:
        await mailing(MailServer("127.0.0.1", server.port, "tls"), outbound).send(message())
        # Nothing but TLS gets through to this one.
        assert len(server.mails) == 1
    async with running_mail_server() as server:
        digest = message(told(1, severity=Severity.NOTICE), told(2, **OVER), key="k.digest")
        await mailing(MailServer("127.0.0.1", server.port, "none"), outbound).send(digest)
    (mail,) = server.mails
    assert mail["Subject"] == "[drivefeed] 2 notices: 1 new, 1 over again"
    assert mail["Importance"] is None
    assert "[over again] connection" in mail.get_body(("plain",)).get_content()


async def test_a_mail_server_of_another_authority_gets_nothing(
    authority: Authority, tmp_path: Path
) -> None:
    async with running_mail_server(starttls=authority.server_context("127.0.0.1")) as server:
        reached = MailServer("127.0.0.1", server.port, "starttls", USER, PASSWORD)
        with pytest.raises(Transient, match="CERTIFICATE_VERIFY_FAILED"):
            await mailing(reached, Outbound()).send(message())
    assert server.mails == []
    assert server.logins == []


async def test_a_mail_server_that_drips_holds_no_thread(outbound: Outbound) -> None:
    with dripping(b"220-harbour\r\n", b"220-hi\r\n") as server:
        channel = mailing(MailServer("127.0.0.1", server.port, "none"), outbound)
        with pytest.raises(Transient, match="did not take it within"):
            await send_within(channel, message(), seconds=0.3)
        # The thread is still inside of smtplib, and gets out because the connection was cut.
        assert await asyncio.to_thread(server.was_left.wait, 30)


async def test_a_webhook_that_drips_is_given_up(outbound: Outbound) -> None:
    with dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"x") as server:
        channel = posting("slack", f"http://127.0.0.1:{server.port}/hook", outbound)
        with pytest.raises(Transient, match="did not take it within"):
            await send_within(channel, message(), seconds=0.3)


async def test_what_a_mail_server_refuses_is_said(authority: Authority, outbound: Outbound) -> None:
    async with running_mail_server(starttls=authority.server_context("127.0.0.1")) as server:
        wrong = MailServer("127.0.0.1", server.port, "starttls", USER, "not-the-password")
        with pytest.raises(Transient, match="535") as refused:
            await mailing(wrong, outbound).send(message())
    assert "not-the-password" not in str(refused.value)
    async with running_mail_server() as server:
        plain = MailServer("127.0.0.1", server.port, "none")
        server.refuse = {"gone@acme.example"}
        with pytest.raises(Transient, match=r"every recipient: gone@acme\.example \(550 No such"):
            await mailing(plain, outbound, "gone@acme.example").send(message())
        answer = await mailing(plain, outbound, "gone@acme.example", "ops@acme.example").send(
            message()
        )
        assert answer == "250 queued as 1; refused: gone@acme.example (550 No such mailbox)"
        server.answers = ["452 The disk is full"]
        with pytest.raises(Transient, match="452 The disk is full"):
            await mailing(plain, outbound).send(message())
    with pytest.raises(Transient, match="did not take it"):
        await mailing(plain, outbound).send(message())


def posting(
    kind: str, url: str, outbound: Outbound, *, secret: str | None = None
) -> WebhookChannel:
    return WebhookChannel(
        DESK,
        url,
        write=WRITERS[kind],
        secret=secret,
        outbound=outbound,
        clock=ManualClock(),
    )


async def test_teams_gets_an_adaptive_card(outbound: Outbound) -> None:
    with running_receiver() as server:
        server.answer = (202, {}, b"")
        assert (
            await posting("teams", f"{server.url}/invoke?sig=x", outbound).send(message()) == "202"
        )
    (posted,) = server.received
    document = json.loads(posted.body)
    assert document["type"] == "message"
    (attachment,) = document["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    card = attachment["content"]
    assert (card["type"], card["version"]) == ("AdaptiveCard", "1.4")
    texts = [block["text"] for block in card["body"]]
    assert "What to do: Check the source, then decide." in texts
    assert "drivefeed removals 'Q&A <2027>'" in texts
    assert all(block["type"] == "TextBlock" for block in card["body"])


async def test_a_long_digest_stays_within_a_card(outbound: Outbound) -> None:
    many = message(*(told(number, words="w" * 900 + ".") for number in range(60)))
    with running_receiver() as server:
        await posting("teams", server.url, outbound).send(many)
    assert len(server.received[0].body) < TEAMS_CARD_LIMIT
    assert "And 50 more: drivefeed notices" in server.received[0].body.decode()


async def test_slack_gets_text_in_which_nobody_is_mentioned(outbound: Outbound) -> None:
    with running_receiver() as server:
        loud = told(subject="connection '<!channel>'")
        assert await posting("slack", server.url, outbound).send(message(loud)) == "200 ok"
    document = json.loads(server.received[0].body)
    assert list(document) == ["text"]
    assert "&lt;!channel&gt;" in document["text"]
    assert "<!channel>" not in document["text"]


async def test_a_webhook_is_signed_with_its_time(outbound: Outbound) -> None:
    with running_receiver() as server:
        await posting("webhook", server.url, outbound, secret="a-shared-word").send(message())
    (posted,) = server.received
    parts = dict(part.split("=") for part in posted.headers["X-Drivefeed-Signature"].split(","))
    assert parts["t"] == str(NOON // 1000)
    signed = f"{parts['t']}.".encode() + posted.body
    assert parts["v1"] == hmac.new(b"a-shared-word", signed, hashlib.sha256).hexdigest()
    assert posted.headers["Idempotency-Key"] == "notice-1.opened"
    document = json.loads(posted.body)
    assert document["key"] == "notice-1.opened"
    assert document["notices"][0]["command"] == "drivefeed removals 'Q&A <2027>'"
    assert document["notices"][0]["over_at"] is None


async def test_what_a_webhook_answers_is_said_without_its_url(outbound: Outbound) -> None:
    with running_receiver() as server:
        url = f"{server.url}/hook/of-secret-word"
        channel = posting("slack", url, outbound)
        server.answers = [(404, {}, f"no_service at {url}".encode())]
        with pytest.raises(Transient, match="404 no_service at the URL") as refused:
            await channel.send(message())
        assert "of-secret-word" not in str(refused.value)
        server.answers = [(429, {"Retry-After": "90"}, b"slow down")]
        with pytest.raises(Throttled, match="429") as throttled:
            await channel.send(message())
        assert throttled.value.seconds == 90
        server.answers = [(302, {"Location": "http://127.0.0.1:1/"}, b"")]
        with pytest.raises(Transient, match="302"):
            await channel.send(message())
    with pytest.raises(Transient, match="was not reached") as unreached:
        await channel.send(message())
    assert "of-secret-word" not in str(unreached.value)


async def test_a_webhook_goes_through_the_proxy_and_trusts_the_ca_file(
    authority: Authority, outbound: Outbound
) -> None:
    async with running_proxy() as proxy:
        way = outbound.changed(https_proxy=proxy.url)
        with running_receiver(authority.server_context("hooks.example")) as server:
            channel = posting("webhook", server.at("hooks.example"), way)
            assert await channel.send(message()) == "200 ok"
    assert proxy.asked == [f"CONNECT hooks.example:{server.port}"]
