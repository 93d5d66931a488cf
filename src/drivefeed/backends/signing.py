"""How a request of the backend contract shows who sent it: a bearer secret, or a signature.

The signature is HMAC-SHA256 under the shared secret over these lines: the time in seconds, a
nonce, the method, the address from ``/v1`` on with its query, and the SHA-256 of the body. The
secret itself never travels, a signature fits no other request, and none is good twice.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from drivefeed.ports import Clock, Ids

SIGNATURE_HEADER: Final = "Drivefeed-Signature"
WINDOW_SECONDS: Final = 300
Way = Literal["hmac", "bearer"]

_MOST_NONCES: Final = 200_000
_WRITTEN: Final = re.compile(r"t=(\d{1,12}),n=([A-Za-z0-9-]{8,64}),v1=([0-9a-f]{64})")


def signature(secret: str, *, at: int, nonce: str, method: str, target: str, body: bytes) -> str:
    """Return the value of the header.

    Args:
        at: seconds since the epoch.
        target: path and query as they are sent, from ``/v1`` on.
    """
    lines = (str(at), nonce, method.upper(), target, hashlib.sha256(body).hexdigest())
    signed = hmac.new(secret.encode(), "\n".join(lines).encode(), hashlib.sha256).hexdigest()
    return f"t={at},n={nonce},v1={signed}"


@dataclass(frozen=True)
class Credential:
    """The secret that is shared with a backend, and how it is shown."""

    secret: str = field(repr=False)
    way: Way = "hmac"

    def headers(
        self, clock: Clock, ids: Ids, *, method: str, target: str, body: bytes
    ) -> dict[str, str]:
        """Return the header that goes with one request; each request needs its own."""
        if self.way == "bearer":
            return {"Authorization": f"Bearer {self.secret}"}
        written = signature(
            self.secret,
            at=clock.now() // 1000,
            nonce=ids.new(),
            method=method,
            target=target,
            body=body,
        )
        return {SIGNATURE_HEADER: written}


class Gate:
    """Tells requests of whoever knows the secret from all others, in constant time.

    It remembers the nonces of the window, a bounded number of them; when there are more, nothing
    is let in until the oldest have expired.
    """

    def __init__(self, credential: Credential, clock: Clock) -> None:
        self._credential = credential
        self._clock = clock
        self._seen: OrderedDict[str, int] = OrderedDict()

    def refusal(
        self, *, authorization: str, signed: str, method: str, target: str, body: bytes
    ) -> str:
        """Return why a request is not let in, or nothing where it is."""
        secret = self._credential.secret
        if self._credential.way == "bearer":
            given = authorization.removeprefix("Bearer ")
            good = hmac.compare_digest(given.encode(), secret.encode())
            return "" if good else "The bearer secret is missing or wrong."
        written = _WRITTEN.fullmatch(signed)
        if written is None:
            return f"The header {SIGNATURE_HEADER} is missing or not written as t=…,n=…,v1=…."
        at, nonce = int(written[1]), written[2]
        right = signature(secret, at=at, nonce=nonce, method=method, target=target, body=body)
        if not hmac.compare_digest(signed.encode(), right.encode()):
            return "The signature does not fit the request, or was made with another secret."
        now = self._clock.now() // 1000
        if abs(now - at) > WINDOW_SECONDS:
            return f"The signature is older than {WINDOW_SECONDS} seconds, or a clock is wrong."
        return self._once(nonce, at, now)

    def _once(self, nonce: str, at: int, now: int) -> str:
        while self._seen and next(iter(self._seen.values())) + 2 * WINDOW_SECONDS < now:
            self._seen.popitem(last=False)
        if nonce in self._seen:
            return "The signature was used before."
        if len(self._seen) >= _MOST_NONCES:
            return "Too many requests came within the window of signatures."
        self._seen[nonce] = max(at, now)
        return ""
