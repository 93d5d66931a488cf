"""Microsoft Entra's part: tokens for apps and people, and the documents that lead to them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from graphsim.clock import Clock, iso
from graphsim.codes import basic_credentials
from graphsim.entra_codes import EntraError
from graphsim.grants import Grants
from graphsim.signing_in import SigningIn

if TYPE_CHECKING:
    from graphsim.exchange import Exchange
    from graphsim.rights import Caller
    from graphsim.seals import Seals
    from graphsim.tenancy import Directory

_PATH = re.compile(
    r"^/(?P<tenant>[^/]+)/(?:(?P<oauth>oauth2/(?:v2\.0/)?(?P<end>token|devicecode|authorize|deviceauth))"
    r"|(?P<openid>(?:v2\.0/)?\.well-known/openid-configuration)"
    r"|(?P<keys>discovery/v2\.0/keys)|(?P<instance>discovery/instance))$",
    re.IGNORECASE,
)


class Entra:
    """The login host.

    Args:
        directory: Tenants, apps and people.
        seals: Signs tokens.
        clock: Decides when they expire.
    """

    def __init__(self, directory: Directory, seals: Seals, clock: Clock) -> None:
        self.directory = directory
        self._clock = clock
        self.grants = Grants(directory, seals, clock)
        self._signing_in = SigningIn(directory, self.grants)

    def caller(self, authorization: str | None) -> Caller:
        """Check a bearer token of Graph and tell whose it is.

        Raises:
            GraphError: 401 when it is missing, made up, or expired.
        """
        return self.grants.tokens.caller(authorization)

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
        op = (match.group("end") or "openid").lower()
        try:
            if op == "token":
                await self._token(exchange, match.group("tenant"))
                return
            exchange.understood(op)
            if op != "authorize":  # which sends its refusals back to the app
                self._refuse_if_told(exchange)
            await self._others(exchange, match, op)
        except EntraError as error:
            stamp = iso(self._clock.now())
            body = error.body(exchange.request_id, stamp, exchange.base)
            await exchange.json(error.status, body, graph=False)

    @staticmethod
    def _refuse_if_told(exchange: Exchange) -> None:
        fault = exchange.fault("status")
        if fault is None:
            return
        if fault.aadsts is None:
            raise exchange.refusal(fault)
        raise EntraError(fault.aadsts)

    async def _token(self, exchange: Exchange, named: str) -> None:
        form = await exchange.form()
        basic = basic_credentials(exchange.headers.get("authorization"))
        asking = self.grants.asking(form, basic)
        facts = {"flow": asking.flow, "user": asking.user, "client": asking.client}
        exchange.understood("token", **facts)
        self._refuse_if_told(exchange)
        answer = self.grants.exchange(form, basic, self._tenant(named), exchange.base)
        await exchange.json(200, answer, graph=False)

    async def _others(self, exchange: Exchange, match: re.Match[str], op: str) -> None:
        named = match.group("tenant")
        if op == "openid":
            await self._document(exchange, match, named)
            return
        tenant_id = self._tenant(named)
        if op == "authorize":
            await self._signing_in.authorize(exchange, tenant_id, named)
        elif op == "deviceauth":
            await self._signing_in.device(exchange, tenant_id, named)
        else:
            await self._device_code(exchange, tenant_id, named)

    async def _device_code(self, exchange: Exchange, tenant_id: str, named: str) -> None:
        form = await exchange.form()
        app = self.grants.known_app(form.get("client_id", ""), tenant_id)
        answer = self.grants.codes.start_device(form, app, tenant_id)
        uri = f"{exchange.base}/{named}/oauth2/deviceauth"
        answer["verification_uri"] = uri
        answer["message"] = f"Open {uri}?user_code={answer['user_code']} to sign in."
        await exchange.json(200, answer, graph=False)

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
        tenant_id = self.directory.find_tenant(named)
        if tenant_id is None:
            raise EntraError(90002, f"(tenant {named})")
        return tenant_id
