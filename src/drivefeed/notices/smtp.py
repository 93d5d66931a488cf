"""Notices by mail."""

from __future__ import annotations

import asyncio
import re
import smtplib
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, parseaddr
from typing import TYPE_CHECKING, Any

from drivefeed.domain.errors import Transient
from drivefeed.domain.redact import redact
from drivefeed.notices.wording import html_text, plain_text, title_of

if TYPE_CHECKING:
    from drivefeed.domain.notices import Message, Subscription
    from drivefeed.outbound import Outbound

_TIMEOUT_SECONDS = 20.0
"""For each answer of the server; the whole takes no longer than the caller allows."""
_PORTS = {"starttls": 587, "tls": 465, "none": 25}


@dataclass(frozen=True, slots=True)
class MailServer:
    """How a mail server is reached.

    Attributes:
        port: 0 for the usual one of ``tls``.
        tls: ``starttls``, ``tls`` or ``none``.
        user: who signs in; empty for nobody.
    """

    host: str
    port: int = 0
    tls: str = "starttls"
    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def where(self) -> str:
        """The server as sentences call it."""
        return f"The mail server {self.host}:{self.port or _PORTS[self.tls]}"


class MailChannel:
    """Sends each message as one mail; see :class:`drivefeed.services.notices.Channel`."""

    def __init__(
        self,
        subscription: Subscription,
        server: MailServer,
        *,
        sender: str,
        to: tuple[str, ...],
        outbound: Outbound,
    ) -> None:
        self.subscription = subscription
        self._server = server
        self._sender = sender
        self._to = to
        self._outbound = outbound

    async def send(self, message: Message) -> str:
        """Send a mail; return the server's answer.

        Raises:
            Transient: the server was not reached, or did not take it for all recipients.
            NeedsAttention: the CA file cannot be read.
        """
        line = _Line()
        try:
            return await asyncio.to_thread(
                self._deliver, mail_of(message, self._sender, self._to), line
            )
        except asyncio.CancelledError:
            # A server that says a little now and then would hold the thread for ever.
            line.cut()
            raise

    def _deliver(self, mail: EmailMessage, line: _Line) -> str:
        where = self._server.where
        try:
            with self._connected(line) as client:
                refused = client.send_message(mail)
        except smtplib.SMTPResponseException as error:
            said = _text(error.smtp_error)
            raise Transient(f"{where} refused it: {error.smtp_code} {said}") from error
        except smtplib.SMTPRecipientsRefused as error:
            raise Transient(
                f"{where} refused every recipient: {_refusals(error.recipients)}"
            ) from (error)
        except (smtplib.SMTPException, OSError) as error:
            raise Transient(f"{where} did not take it: {error}") from error
        if refused:
            return f"{client.answer}; refused: {_refusals(refused)}"
        return client.answer

    def _connected(self, line: _Line) -> _Remembering:
        server = self._server
        port = server.port or _PORTS[server.tls]
        if server.tls == "tls":
            client: _Remembering = _RememberingTls(
                line, server.host, port, context=self._outbound.tls()
            )
        else:
            client = _Remembering(line, server.host, port)
        try:
            if server.tls == "starttls":
                client.starttls(context=self._outbound.tls())
            if server.user:
                client.login(server.user, server.password)
        except BaseException:
            client.close()
            raise
        return client


class _Line:
    """A connection that another thread may cut, whatever it waits for."""

    def __init__(self) -> None:
        self._client: smtplib.SMTP | None = None
        self._is_cut = False

    def takes(self, client: smtplib.SMTP) -> None:
        """Begin to stand for the connection of a client, also while it is made.

        Raises:
            ConnectionAbortedError: it was cut.
        """
        self._client = client
        if self._is_cut:
            raise ConnectionAbortedError("it took too long")

    def cut(self) -> None:
        """End the connection; what waits for the server fails at once."""
        self._is_cut = True
        found = getattr(self._client, "sock", None)
        if found is not None:
            with suppress(OSError):
                # TLS would have its own end of a connection, and the other thread is inside of it.
                socket.socket.shutdown(found, socket.SHUT_RDWR)


class _Remembering(smtplib.SMTP):
    """Keeps the answer to the content, which names the mail in the server's own log."""

    answer = "accepted"

    def __init__(self, line: _Line, host: str, port: int, **options: Any) -> None:
        self._line = line
        super().__init__(host, port, timeout=_TIMEOUT_SECONDS, **options)

    def getreply(self) -> tuple[int, bytes]:
        """Wait for an answer, unless the connection was cut before."""
        self._line.takes(self)
        return super().getreply()

    def data(self, msg: Any) -> tuple[int, bytes]:
        """Send the content."""
        code, said = super().data(msg)
        self.answer = f"{code} {_text(said)}"
        return code, said


class _RememberingTls(_Remembering, smtplib.SMTP_SSL):
    """The same, with TLS from the first byte on."""


def mail_of(message: Message, sender: str, to: tuple[str, ...]) -> EmailMessage:
    """Make the mail of a message; its Message-ID is the same at every attempt."""
    mail = EmailMessage()
    domain = re.sub(r"[^A-Za-z0-9.-]", "", parseaddr(sender)[1].rpartition("@")[2]) or "localhost"
    mail["Message-ID"] = f"<{message.key}@{domain}>"
    mail["Date"] = format_datetime(datetime.fromtimestamp(message.at / 1000, tz=UTC))
    mail["From"] = sender
    mail["To"] = ", ".join(to)
    mail["Subject"] = f"[drivefeed] {title_of(message)}"
    # Out-of-office answers to a machine help nobody.
    mail["Auto-Submitted"] = "auto-generated"
    mail["X-Drivefeed-Notices"] = " ".join(one.notice_id for one in message.told)
    if message.is_urgent:
        mail["Importance"] = "high"
    mail.set_content(plain_text(message))
    mail.add_alternative(html_text(message), subtype="html")
    return mail


def _refusals(found: dict[str, tuple[int, bytes]]) -> str:
    return ", ".join(f"{name} ({code} {_text(said)})" for name, (code, said) in found.items())


def _text(said: bytes | str) -> str:
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    return redact(" ".join(text.split()))[:300]
