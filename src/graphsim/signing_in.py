"""The part of signing in that people see: the consent page and the page for device codes.

By default the first person agrees at once, so that a client's flow runs without a browser. Who
sits at the browser and what they answer is set in :class:`graphsim.tenancy.Browser`, or in each
request by ``login_hint`` (or ``user``) and ``answer`` (``accept``, ``decline``).
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from graphsim.entra_codes import EntraError
from graphsim.scopes import consented

if TYPE_CHECKING:
    from graphsim.exchange import Exchange
    from graphsim.grants import Grants
    from graphsim.tenancy import Directory, Person


class SigningIn:
    """Answers what a browser asks of the login host.

    Args:
        directory: The people, and who of them sits at the browser.
        grants: Makes codes.
    """

    def __init__(self, directory: Directory, grants: Grants) -> None:
        self._directory = directory
        self._grants = grants

    async def authorize(self, exchange: Exchange, tenant_id: str, named: str) -> None:
        """Sign somebody in and send the browser back with a code, or with the refusal.

        Raises:
            EntraError: The app or the way back is unknown, so there is nowhere to send it to.
        """
        options = dict(parse_qsl(exchange.query))
        if exchange.method == "POST":
            options |= await exchange.form()
        app = self._grants.known_app(options.get("client_id", ""), tenant_id)
        target = options.get("redirect_uri", "")
        if not target:
            raise EntraError(90014, "(redirect_uri)")
        decision = options.get("answer", self._directory.browser.answer)
        if decision == "ask":
            await self._page(exchange, app.name, options.get("scope", ""))
            return
        try:
            fault = exchange.fault("status")
            if fault is not None:
                raise EntraError(fault.aadsts or 90033)  # noqa: TRY301 - one way back for all
            person = self._person(options, tenant_id, named)
            if decision != "accept":
                raise EntraError(65004)  # noqa: TRY301 - one way back for all
            options["scope"] = consented(app, options.get("scope", ""), "")
            code = self._grants.codes.start_code(options, app, tenant_id, person)
            answer = {"code": code}
        except EntraError as error:
            name = "access_denied" if error.number == 65004 else error.error  # noqa: PLR2004
            answer = {"error": name, "error_description": str(error)}
        if "state" in options:
            answer["state"] = options["state"]
        if options.get("response_mode") == "form_post":
            await exchange.respond(200, _HTML, _form(target, answer))
            return
        seam = "&" if "?" in target else "?"
        await exchange.respond(302, {"Location": f"{target}{seam}{urlencode(answer)}"}, b"")

    async def device(self, exchange: Exchange, tenant_id: str, named: str) -> None:
        """Take a person's answer to a device code."""
        options = dict(parse_qsl(exchange.query))
        decision = options.get("answer", self._directory.browser.answer)
        code = options.get("user_code", options.get("otc", ""))
        if not code:
            await exchange.respond(200, _HTML, _CODE_PAGE)
            return
        waiting = self._grants.codes.of_device(code)
        if decision == "ask" and waiting is not None:
            await self._page(exchange, waiting.app.name, waiting.scope)
            return
        try:
            person = self._person(options, tenant_id, named)
        except EntraError as error:
            self._grants.codes.refuse_device(code, error.number)
            raise
        known = self._grants.codes.answer_device(code, person, accept=decision == "accept")
        text = b"Done; return to the app.\n" if known else b"That code is not known.\n"
        await exchange.respond(200 if known else 404, {"Content-Type": "text/plain"}, text)

    def _person(self, options: dict[str, str], tenant_id: str, named: str) -> Person:
        asked = options.get("user") or self._directory.browser.user
        hinted = self._directory.find_person(options.get("login_hint", ""))
        person = hinted or self._directory.person  # a hint is only a hint
        if asked:
            named_person = self._directory.find_person(asked)
            if named_person is None:
                raise EntraError(50034)
            person = named_person
        general = named.lower() in {"common", "organizations", "consumers"}
        if not general and person.tenant_id != tenant_id:
            raise EntraError(50020)
        return person

    async def _page(self, exchange: Exchange, app: str, scope: str) -> None:
        """Show who could sign in, and to what."""
        base = f"{exchange.raw_path}?{exchange.query}"
        links = [
            f'<li><a href="{escape(base)}&amp;{urlencode({"user": one.name, "answer": "accept"})}">'
            f"Continue as {escape(one.name)}</a></li>"
            for one in self._directory.people.values()
        ]
        links.append(f'<li><a href="{escape(base)}&amp;answer=decline">Decline</a></li>')
        text = (
            f"<!doctype html><title>Sign in (graphsim)</title><h1>{escape(app)}</h1>"
            f"<p>asks for: {escape(scope)}</p><ul>{''.join(links)}</ul>"
        )
        await exchange.respond(200, _HTML, text.encode())


def _form(target: str, answer: dict[str, str]) -> bytes:
    """Return a page that posts the answer to the app, as ``response_mode=form_post`` asks for."""
    fields = "".join(
        f'<input type="hidden" name="{name}" value="{escape(value)}">'
        for name, value in answer.items()
    )
    return (
        f'<!doctype html><title>Working (graphsim)</title><form method="post" '
        f'action="{escape(target)}">{fields}<button>Continue</button></form>'
        "<script>document.forms[0].submit()</script>"
    ).encode()


_HTML = {"Content-Type": "text/html; charset=utf-8"}
_CODE_PAGE = (
    b"<!doctype html><title>Enter code (graphsim)</title>"
    b'<form><input name="user_code" aria-label="Code"><button>Next</button></form>'
)
