"""A real SMTP server on loopback that keeps the mails it takes."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from typing import TYPE_CHECKING, Any

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator
    from email.message import EmailMessage

USER, PASSWORD = "drivefeed", "a-password-of-the-tests"


@dataclass
class MailServer:
    """What arrived, and the answers that a test wants: to RCPT and to the content."""

    port: int = 0
    mails: list[EmailMessage] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)
    were_encrypted: list[bool] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)
    refuse: set[str] = field(default_factory=set)
    answers: list[str] = field(default_factory=list)

    async def handle_RCPT(  # noqa: N802 - the name that aiosmtpd calls
        self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any
    ) -> str:
        if address in self.refuse:
            return "550 No such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802 - the name that aiosmtpd calls
        self, _server: Any, session: Any, envelope: Any
    ) -> str:
        if self.answers:
            return self.answers.pop(0)
        self.mails.append(message_from_bytes(envelope.content, policy=policy.default))  # type: ignore[arg-type]
        self.recipients.append(list(envelope.rcpt_tos))
        self.were_encrypted.append(session.ssl is not None)
        return f"250 queued as {len(self.mails)}"

    def authenticate(
        self, _server: Any, _session: Any, _envelope: Any, _mechanism: str, login: Any
    ) -> AuthResult:
        assert isinstance(login, LoginPassword)
        self.logins.append(login.login.decode())
        is_right = (login.login, login.password) == (USER.encode(), PASSWORD.encode())
        return AuthResult(success=is_right, handled=False)


@asynccontextmanager
async def running_mail_server(
    *, starttls: ssl.SSLContext | None = None, tls: ssl.SSLContext | None = None
) -> AsyncIterator[MailServer]:
    """Run a mail server on the running loop while the block lasts.

    Args:
        starttls: offers STARTTLS and demands it before anything else, and a login.
        tls: speaks TLS from the first byte on.
    """
    kept = MailServer()

    def session() -> SMTP:
        return SMTP(
            kept,
            hostname="mail.example",
            tls_context=starttls,
            require_starttls=starttls is not None,
            auth_required=starttls is not None,
            authenticator=kept.authenticate,
        )

    loop = asyncio.get_running_loop()
    server = await loop.create_server(session, "127.0.0.1", 0, ssl=tls)
    kept.port = server.sockets[0].getsockname()[1]
    try:
        yield kept
    finally:
        server.close()
