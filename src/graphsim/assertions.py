"""Client assertions (RFC 7523): a JWT signed by a certificate or by a trusted issuer, for a secret.

What is checked follows Microsoft's "certificate credentials" and "workload identity federation"
pages: algorithm, thumbprint, signature, audience, issuer and subject, times, and that no assertion
is used twice.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from graphsim.access_tokens import part
from graphsim.entra_codes import EntraError

if TYPE_CHECKING:
    from collections.abc import Container

    from graphsim.clock import Clock
    from graphsim.tenancy import App, Directory, KeyCredential

KIND = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_LEEWAY = 300
"""Seconds by which clocks may differ."""


@dataclass(frozen=True)
class _Token:
    header: dict[str, Any]
    claims: dict[str, Any]
    signed: bytes
    signature: bytes


class Assertions:
    """Checks client assertions and remembers those that were used.

    Args:
        directory: The trusted issuers.
        clock: Judges times.
    """

    def __init__(self, directory: Directory, clock: Clock) -> None:
        self._directory = directory
        self._clock = clock
        self._used: dict[str, float] = {}

    def check(self, app: App, assertion: str, audiences: Container[str]) -> None:
        """Accept an assertion of this app.

        Args:
            app: Who claims to ask.
            assertion: The JWT.
            audiences: What a self-signed one may name as its audience.

        Raises:
            EntraError: The refusal.
        """
        token = _parsed(assertion)
        if "x5t" in token.header or "x5t#S256" in token.header:
            self._check_certificate(app, token, audiences)
        else:
            self._check_federation(app, token)

    def _check_certificate(self, app: App, token: _Token, audiences: Container[str]) -> None:
        credential, certificate = _registered(app, token)
        key = certificate.public_key()
        if not isinstance(key, rsa.RSAPublicKey) or not _is_signed(token, key):
            raise EntraError(700027, "[Reason - The signature does not fit the certificate.]")
        ends = credential.expires or certificate.not_valid_after_utc.timestamp()
        if self._clock.now() >= ends:
            raise EntraError(700027, "[Reason - The key used is expired.]")
        claims = token.claims
        if claims.get("aud") not in audiences:
            raise EntraError(700023)
        if not app.client_id.lower() == _low(claims, "iss") == _low(claims, "sub"):
            raise EntraError(700021)
        self._check_times(claims)
        number = str(claims.get("jti", ""))
        now = self._clock.now()
        self._used = {known: end for known, end in self._used.items() if end > now}
        if not number or number in self._used:
            raise EntraError(700027, "[Reason - The assertion was used before, or has no jti.]")
        self._used[number] = float(claims["exp"]) + _LEEWAY

    def _check_federation(self, app: App, token: _Token) -> None:
        claims = token.claims
        public = self._directory.issuers.get(str(claims.get("iss", "")))
        own = [one for one in app.federations if one.issuer == claims.get("iss")]
        if public is None or not own:
            raise EntraError(700211)
        key = serialization.load_pem_public_key(public)
        if not isinstance(key, rsa.RSAPublicKey) or not _is_signed(token, key):
            raise EntraError(700027, "[Reason - The signature does not fit the issuer's key.]")
        own = [one for one in own if one.subject == claims.get("sub")]
        if not own:
            raise EntraError(700213)
        audience = claims.get("aud")
        named = audience if isinstance(audience, list) else [audience]
        if not any(one.audience in named for one in own):
            raise EntraError(700212)
        self._check_times(claims)

    def _check_times(self, claims: dict[str, Any]) -> None:
        now = self._clock.now()
        try:
            begins = float(claims.get("nbf", claims.get("iat", now)))
            ends = float(claims["exp"])
        except (KeyError, TypeError, ValueError) as error:
            raise EntraError(50027) from error
        if begins > now + _LEEWAY or ends < now - _LEEWAY:
            raise EntraError(700024)


class Issuer:
    """An identity provider whose tokens apps may sign in with; for tests of federation.

    Args:
        url: The ``iss`` of its tokens.
        clock: The time in them.
    """

    def __init__(self, url: str, clock: Clock) -> None:
        self.url = url
        self._clock = clock
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    @property
    def public_pem(self) -> bytes:
        """The public key, to register in a directory."""
        return self._key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    def token(
        self,
        subject: str,
        audience: str = "api://AzureADTokenExchange",
        lifetime: float = 3600,
    ) -> str:
        """Return a signed token, as the platform would put it into the token file."""
        now = int(self._clock.now())
        claims = {"iss": self.url, "sub": subject, "aud": audience, "iat": now, "nbf": now}
        body = f"{part({'alg': 'RS256', 'typ': 'JWT'})}.{part(claims | {'exp': now + lifetime})}"
        raw = self._key.sign(body.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{body}.{base64.urlsafe_b64encode(raw).decode().rstrip('=')}"


def _registered(app: App, token: _Token) -> tuple[KeyCredential, x509.Certificate]:
    """Return the registered certificate that a token's thumbprint names."""
    named = {_raw(str(token.header[one])) for one in ("x5t", "x5t#S256") if one in token.header}
    for credential in app.certificates:
        certificate = x509.load_pem_x509_certificate(credential.pem)
        der = certificate.public_bytes(serialization.Encoding.DER)
        # SHA-1 names the certificate here, as x5t asks; nothing rests on its strength.
        prints = {hashlib.sha1(der, usedforsecurity=False).digest(), hashlib.sha256(der).digest()}
        if named and named <= prints:
            return credential, certificate
    raise EntraError(700027, "[Reason - The key was not found.]")


def _is_signed(token: _Token, key: rsa.RSAPublicKey) -> bool:
    sha = hashes.SHA256()
    schemes: dict[str, padding.AsymmetricPadding] = {
        "RS256": padding.PKCS1v15(),
        "PS256": padding.PSS(padding.MGF1(sha), padding.PSS.DIGEST_LENGTH),
    }
    scheme = schemes.get(str(token.header.get("alg")))
    if scheme is None:
        raise EntraError(50027, "The algorithm is neither RS256 nor PS256.")
    try:
        key.verify(token.signature, token.signed, scheme, sha)
    except InvalidSignature:
        return False
    return True


def _parsed(assertion: str) -> _Token:
    try:
        head, body, signature = assertion.split(".")
        return _Token(
            msgspec.json.decode(_raw(head), type=dict[str, Any]),
            msgspec.json.decode(_raw(body), type=dict[str, Any]),
            f"{head}.{body}".encode(),
            _raw(signature),
        )
    except (ValueError, msgspec.MsgspecError) as error:
        raise EntraError(50027) from error


def _raw(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _low(claims: dict[str, Any], name: str) -> str:
    return str(claims.get(name, "")).lower()
