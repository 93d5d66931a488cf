"""Notices by webhook: a Workflows webhook of Teams, what speaks like Slack, and plain JSON."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import httpx

from drivefeed import __version__
from drivefeed.domain.errors import Throttled, Transient
from drivefeed.domain.redact import redact
from drivefeed.notices.wording import json_document, slack_text, teams_card

if TYPE_CHECKING:
    from collections.abc import Callable

    from drivefeed.domain.notices import Message, Subscription
    from drivefeed.outbound import Outbound
    from drivefeed.ports import Clock

SIGNATURE_HEADER = "X-Drivefeed-Signature"
_TIMEOUT_SECONDS = 20.0
_LONGEST_ANSWER = 300
_THROTTLED = frozenset({429, 503})


class WebhookChannel:
    """Posts each message to one URL; see :class:`drivefeed.services.notices.Channel`.

    The URL is a secret: whoever knows that of Teams or Slack may post there. No sentence has it.

    Args:
        write: makes the body of a message.
        secret: signs the body, or None.
    """

    def __init__(
        self,
        subscription: Subscription,
        url: str,
        *,
        write: Callable[[Message], dict[str, Any]],
        secret: str | None,
        outbound: Outbound,
        clock: Clock,
    ) -> None:
        self.subscription = subscription
        self._url = url
        self._write = write
        self._secret = secret
        self._outbound = outbound
        self._clock = clock

    async def send(self, message: Message) -> str:
        """Post a message; return the status and the beginning of the answer.

        Raises:
            Throttled: the server asked to wait.
            Transient: it was not reached, or answered anything but a success.
            NeedsAttention: the CA file cannot be read.
        """
        body = json.dumps(self._write(message), ensure_ascii=False).encode()
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "User-Agent": f"drivefeed/{__version__}",
            "Idempotency-Key": message.key,
        }
        if self._secret:
            seconds = self._clock.now() // 1000
            headers[SIGNATURE_HEADER] = signature(self._secret, body, at=seconds)
        transport = await asyncio.to_thread(self._outbound.transport)
        async with httpx.AsyncClient(
            transport=transport, timeout=_TIMEOUT_SECONDS, trust_env=False, follow_redirects=False
        ) as client:
            try:
                response = await client.post(self._url, content=body, headers=headers)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                said = self._without_url(str(error)) or type(error).__name__
                raise Transient(f"{self._where} was not reached: {said}") from error
        return self._judged(response)

    def _judged(self, response: httpx.Response) -> str:
        said = self._without_url(" ".join(response.text.split()))[:_LONGEST_ANSWER]
        answer = f"{response.status_code} {said}".strip()
        if response.is_success:
            return answer
        if response.status_code in _THROTTLED:
            wait = response.headers.get("Retry-After", "")
            seconds = float(wait) if wait.isdigit() else 60.0
            raise Throttled(f"{self._where} asked to wait: {answer}", seconds=seconds)
        raise Transient(f"{self._where} answered {answer}")

    @property
    def _where(self) -> str:
        try:
            host = httpx.URL(self._url).host
        except httpx.InvalidURL:
            return "The URL of the webhook cannot be used, and it"
        return f"The webhook at {host or 'no host'}"

    def _without_url(self, text: str) -> str:
        """Leave the address out: whoever knows it may post, and some servers repeat its path."""
        text = text.replace(self._url, "the URL")
        with suppress(httpx.InvalidURL):
            path = httpx.URL(self._url).raw_path.decode("ascii", "replace")
            for one in (path, path.partition("?")[0]):
                if len(one) > 1:
                    text = text.replace(one, "/…")
        return redact(text)


WRITERS: dict[str, Callable[[Message], dict[str, Any]]] = {
    "teams": teams_card,
    "slack": slack_text,
    "webhook": json_document,
}
"""Kinds of webhooks, and what each is posted."""


def signature(secret: str, body: bytes, *, at: int) -> str:
    """Return ``t=SECONDS,v1=HEX``: HMAC-SHA256 under the secret over ``SECONDS.BODY``.

    The time is signed too, so that a receiver can refuse what somebody recorded and sent again.
    """
    signed = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256)
    return f"t={at},v1={signed.hexdigest()}"
