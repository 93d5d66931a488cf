"""OAuth 2.0 grants: what is checked, and what comes back."""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphsim.access_tokens import AccessTokens, part
from graphsim.assertions import KIND, Assertions
from graphsim.codes import DEVICE, Codes, Pending
from graphsim.entra_codes import EntraError
from graphsim.scopes import consented, default_scopes
from graphsim.seals import BadSealError, Seals

if TYPE_CHECKING:
    from graphsim.clock import Clock
    from graphsim.tenancy import App, Directory, Person


@dataclass(frozen=True)
class Asking:
    """A request to the token endpoint as far as faults and the log need to know it."""

    flow: str
    """``client_credentials``, ``refresh_token``, ``authorization_code`` or ``device_code``."""
    client: str
    user: str | None
    """The user principal name, where the request names a person."""


@dataclass(frozen=True)
class Reuse:
    """A refresh token that came again although its use had ended it."""

    time: float
    user: str
    client: str


class Grants:
    """Issues tokens. Codes live in memory; access and refresh tokens outlive a restart."""

    def __init__(self, directory: Directory, seals: Seals, clock: Clock) -> None:
        self._directory = directory
        self._seals = seals
        self._clock = clock
        self._used: set[str] = set()
        self._revoked: dict[str, float] = {}
        self.codes = Codes(directory, clock)
        self.assertions = Assertions(directory, clock)
        self.tokens = AccessTokens(directory, seals, clock)
        self.refresh_generation = 1
        self.refreshes = 0
        """How many refresh tokens were exchanged for new ones."""
        self.reused: list[Reuse] = []
        """Refresh tokens that came again in strict rotation: each is a defect of the client."""

    def asking(self, form: dict[str, str], basic: tuple[str, str] | None) -> Asking:
        """Tell whose request this is, without judging it."""
        flow = form.get("grant_type", "")
        user: str | None = None
        if flow == "refresh_token":
            try:
                facts = self._seals.open("refresh", form.get("refresh_token", ""))
                user = self._directory.people[facts["user"]].name
            except (BadSealError, KeyError):
                user = None
        pending = self.codes.peek(form)
        if pending is not None and pending.person is not None:
            user = pending.person.name
        flow = "device_code" if flow == DEVICE else flow
        return Asking(flow, basic[0] if basic else form.get("client_id", ""), user)

    def exchange(
        self, form: dict[str, str], basic: tuple[str, str] | None, tenant_id: str, base: str
    ) -> dict[str, Any]:
        """Answer a request to the token endpoint.

        Args:
            form: The fields of the request.
            basic: Client id and secret of an Authorization header.
            tenant_id: The tenant that the address names.
            base: The login host's address, for audiences and issuers.

        Raises:
            EntraError: The refusal.
        """
        app, proven = self._client(form, basic, tenant_id, base)
        match form.get("grant_type"):
            case "client_credentials":
                if not proven:
                    raise EntraError(7000218)
                return self._answer(app, tenant_id, None, form.get("scope", ""), app.roles)
            case "refresh_token":
                pending = self._refreshed(form, app)
            case "authorization_code":
                pending = self.codes.redeem(form, app)
            case kind if kind == DEVICE:
                pending = self.codes.poll(form, app)
            case kind:
                raise EntraError(70003 if kind else 90014)
        return self._signed_in(form, app, pending, base)

    def refresh_token(
        self,
        scope: str = "Files.Read.All Sites.Read.All offline_access",
        person: Person | None = None,
        app: App | None = None,
    ) -> str:
        """Return a fresh refresh token, as after a sign-in; by default of the first person."""
        person = person or self._directory.person
        facts = {
            "exp": self._clock.now() + self._directory.refresh_lifetime,
            "iat": self._clock.now(),
            "scope": scope,
            "n": secrets.token_hex(8),
            "gen": self.refresh_generation,
            "user": person.id,
            "app": (app or self._directory.app).client_id,
        }
        return self._seals.seal("refresh", facts)

    def revoke_access_tokens(self) -> None:
        """Make Graph refuse every access token given so far."""
        self.tokens.generation += 1

    def revoke_refresh_tokens(self, person: Person | None = None) -> None:
        """Make the token endpoint refuse every refresh token given so far, or one person's."""
        if person is None:
            self.refresh_generation += 1
        else:
            self._revoked[person.id] = self._clock.now()

    def known_app(self, client_id: str, tenant_id: str) -> App:
        """Return an app registration as a tenant sees it.

        Raises:
            EntraError: 700016.
        """
        app = self._directory.apps.get(client_id.lower())
        if app is None or (app.tenants is not None and tenant_id not in app.tenants):
            raise EntraError(700016, f"(client_id {client_id or 'missing'})")
        return app

    def _client(
        self, form: dict[str, str], basic: tuple[str, str] | None, tenant_id: str, base: str
    ) -> tuple[App, bool]:
        """Return the app that asks, and whether it proved to be itself."""
        client, secret = basic or (form.get("client_id", ""), form.get("client_secret"))
        app = self.known_app(client, tenant_id)
        if assertion := form.get("client_assertion"):
            if form.get("client_assertion_type") != KIND:
                raise EntraError(90014, "(client_assertion_type)")
            own = {f"{base}/{name}" for name in self._spellings(tenant_id)}
            audiences = {f"{one}/oauth2/v2.0/token" for one in own} | {f"{o}/v2.0" for o in own}
            self.assertions.check(app, assertion, audiences)
            return app, True
        if not secret:
            return app, False
        known = next((one for one in app.secrets if one.value == secret), None)
        if known is None:
            raise EntraError(7000215)
        if known.expires is not None and known.expires <= self._clock.now():
            raise EntraError(7000222)
        return app, True

    def _spellings(self, tenant_id: str) -> set[str]:
        domains = {name for name, known in self._directory.tenants.items() if known == tenant_id}
        return {tenant_id, "common", "organizations", "consumers", *domains}

    def _refreshed(self, form: dict[str, str], app: App) -> Pending:
        try:
            facts = self._seals.open("refresh", form.get("refresh_token", ""))
        except BadSealError as error:
            raise EntraError(70000) from error
        person = self._directory.people.get(facts["user"])
        if person is None or facts["app"].lower() != app.client_id.lower():
            raise EntraError(70000)
        if facts["exp"] < self._clock.now():
            raise EntraError(700082)
        revoked = self._revoked.get(person.id, float("-inf"))
        if facts["gen"] != self.refresh_generation or facts["iat"] <= revoked:
            raise EntraError(50173)
        scope = consented(app, form.get("scope") or facts["scope"], facts["scope"])
        if self._directory.strict_rotation and facts["n"] in self._used:
            self.reused.append(Reuse(self._clock.now(), person.name, app.client_id))
            raise EntraError(70000, "(strict rotation)")
        self._used.add(facts["n"])
        self.refreshes += 1
        return Pending(app, person.tenant_id, scope=scope, person=person)

    def _signed_in(
        self, form: dict[str, str], app: App, pending: Pending, base: str
    ) -> dict[str, Any]:
        person = pending.person
        assert person is not None
        if person.blocked is not None:
            raise EntraError(person.blocked)
        scope = consented(app, pending.scope, pending.scope)
        answer = self._answer(app, person.tenant_id, person, scope, default_scopes(app, scope))
        answer["refresh_token"] = self.refresh_token(scope, person, app)
        if "openid" in scope.split():
            issuer = f"{base}/{person.tenant_id}/v2.0"
            answer["id_token"] = self._id_token(app, person, issuer, pending.nonce)
        if form.get("client_info"):
            answer["client_info"] = part({"uid": person.id, "utid": person.tenant_id})
        return answer

    def _answer(
        self, app: App, tenant_id: str, person: Person | None, scope: str, permissions: set[str]
    ) -> dict[str, Any]:
        lifetime = int(self._directory.token_lifetime)
        return {
            "token_type": "Bearer",
            "scope": scope,
            "expires_in": lifetime,
            "ext_expires_in": lifetime,
            "access_token": self.tokens.make(app, tenant_id, person, permissions),
        }

    def _id_token(self, app: App, person: Person, issuer: str, nonce: str) -> str:
        now = int(self._clock.now())
        claims: dict[str, Any] = {
            "iss": issuer, "aud": app.client_id, "iat": now, "nbf": now, "exp": now + 3600,
            "oid": person.id, "sub": person.id, "tid": person.tenant_id,
            "preferred_username": person.name, "name": person.display_name, "ver": "2.0",
        }  # fmt: skip
        if nonce:
            claims["nonce"] = nonce
        signature = base64.urlsafe_b64encode(b"not checked by any client").decode().rstrip("=")
        return f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part(claims)}.{signature}"
