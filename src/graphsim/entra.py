"""Microsoft Entra's part: tokens for apps and people, and the documents that lead to them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

from graphsim.clock import Clock, iso
from graphsim.entra_codes import EntraError
from graphsim.errors import GraphError
from graphsim.grants import Directory, Grants, basic_credentials
from graphsim.seals import BadSealError, Seals

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from graphsim.exchange import Exchange

_PATH = re.compile(
    r"^/(?P<tenant>[^/]+)/(?:(?P<oauth>oauth2/(?:v2\.0/)?(?P<end>token|devicecode|authorize|deviceauth))"
    r"|(?P<openid>(?:v2\.0/)?\.well-known/openid-configuration)"
    r"|(?P<keys>discovery/v2\.0/keys)|(?P<instance>discovery/instance))$",
    re.IGNORECASE,
)


class Entra:
    """The login host.

    Args:
        directory: The tenant with its one app and one person.
        seals: Signs tokens.
        clock: Decides when they expire.
    """

    def __init__(self, directory: Directory, seals: Seals, clock: Clock) -> None:
        self.directory = directory
        self._seals = seals
        self._clock = clock
        self.grants = Grants(directory, seals, clock)

    def delegated(self, authorization: str | None) -> bool:
        """Check a bearer token of Graph; tell whether it acts for a person.

        Raises:
            GraphError: 401 when it is missing, made up, or expired.
        """
        kind, _, token = (authorization or "").partition(" ")
        if kind.lower() != "bearer" or not token:
            raise _unauthorized("Access token is empty.", "invalid_token")
        try:
            facts = self._seals.open("access", token)
        except BadSealError as error:
            raise _unauthorized("The access token is malformed.", "invalid_token") from error
        if facts["exp"] <= self._clock.now():
            raise _unauthorized("The access token has expired.", "expired_token")
        if facts["gen"] != self.grants.generation:
            raise _unauthorized("The access token was revoked.", "invalid_token")
        return bool(facts["user"])

    async def answer(self, exchange: Exchange) -> None:
        """Answer a request to the login host."""
        if exchange.raw_path == "/":
            exchange.understood("login")
            exchange.refuse_if_told()
            await exchange.respond(200, {"Content-Type": "text/plain"}, b"graphsim\n")
            return
        match = _PATH.match(exchange.raw_path)
        if match is None:
            exchange.understood("unknown")
            await exchange.respond(404, {"Content-Type": "text/plain"}, b"Nothing is here.\n")
            return
        tenant = match.group("tenant")
        ends: dict[str, Callable[[Exchange, str], Coroutine[Any, Any, None]]] = {
            "token": self._token,
            "devicecode": self._device_code,
            "authorize": self._authorize,
            "deviceauth": self._device_answer,
        }
        op = (match.group("end") or "openid").lower()
        exchange.understood(op)
        fault = exchange.fault("status")
        if fault and fault.aadsts is None:
            raise exchange.refusal(fault)
        try:
            if fault:
                raise EntraError(fault.aadsts or 0)  # noqa: TRY301 - one way out for all refusals
            if op == "openid":
                await self._document(exchange, match, tenant)
            else:
                await ends[op](exchange, tenant)
        except EntraError as error:
            stamp = iso(self._clock.now())
            body = error.body(exchange.request_id, stamp, exchange.base)
            await exchange.json(error.status, body, graph=False)

    async def _token(self, exchange: Exchange, tenant: str) -> None:
        form = await exchange.form()
        basic = basic_credentials(exchange.headers.get("authorization"))
        answer = self.grants.exchange(form, basic, f"{exchange.base}/{self._tenant(tenant)}/v2.0")
        await exchange.json(200, answer, graph=False)

    async def _device_code(self, exchange: Exchange, tenant: str) -> None:
        form = await exchange.form()
        answer = self.grants.start_device(form)
        uri = f"{exchange.base}/{tenant}/oauth2/deviceauth"
        answer["verification_uri"] = uri
        answer["message"] = f"Open {uri}?user_code={answer['user_code']} to sign in."
        await exchange.json(200, answer, graph=False)

    async def _device_answer(self, exchange: Exchange, tenant: str) -> None:
        del tenant
        options = dict(parse_qsl(exchange.query))
        known = self.grants.answer_device(
            options.get("user_code", ""), accept=options.get("answer", "accept") == "accept"
        )
        text = b"Done; return to the app.\n" if known else b"That code is not known.\n"
        await exchange.respond(200 if known else 404, {"Content-Type": "text/plain"}, text)

    async def _authorize(self, exchange: Exchange, tenant: str) -> None:
        del tenant
        options = dict(parse_qsl(exchange.query))
        if exchange.method == "POST":
            options |= await exchange.form()
        target = options.get("redirect_uri", "")
        answer = {"code": self.grants.start_code(options)}
        if "state" in options:
            answer["state"] = options["state"]
        seam = "&" if "?" in target else "?"
        await exchange.respond(302, {"Location": f"{target}{seam}{urlencode(answer)}"}, b"")

    async def _document(self, exchange: Exchange, match: re.Match[str], tenant: str) -> None:
        if match.group("keys"):
            await exchange.json(200, {"keys": []}, graph=False)
            return
        base = f"{exchange.base}/{self._tenant(tenant)}"
        document: dict[str, Any] = {
            "token_endpoint": f"{base}/oauth2/v2.0/token",
            "authorization_endpoint": f"{base}/oauth2/v2.0/authorize",
            "device_authorization_endpoint": f"{base}/oauth2/v2.0/devicecode",
            "jwks_uri": f"{base}/discovery/v2.0/keys",
            "issuer": f"{base}/v2.0",
            "token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"],
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "subject_types_supported": ["pairwise"],
            "id_token_signing_alg_values_supported": ["HS256"],
            "scopes_supported": ["openid", "profile", "offline_access"],
            "cloud_instance_name": exchange.host,
            "msgraph_host": exchange.host,
        }
        if match.group("instance"):
            document = {
                "tenant_discovery_endpoint": f"{base}/v2.0/.well-known/openid-configuration",
                "api-version": "1.1",
                "metadata": [],
            }
        await exchange.json(200, document, graph=False)

    def _tenant(self, named: str) -> str:
        general = {"common", "organizations", "consumers"}
        return self.directory.tenant_id if named.lower() in general else named


def _unauthorized(message: str, error: str) -> GraphError:
    challenge = f'Bearer realm="", error="{error}", error_description="{message}"'
    headers = {"WWW-Authenticate": challenge}
    return GraphError(401, "InvalidAuthenticationToken", message, None, headers)
