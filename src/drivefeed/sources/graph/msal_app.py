"""MSAL's public client over one token cache. Everything here may block: call it in threads."""

from __future__ import annotations

import logging
import warnings
from typing import TYPE_CHECKING, Any

from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph.account import CLOUDS
from drivefeed.sources.graph.http import USER_AGENT
from drivefeed.sources.graph.waits import told_wait

if TYPE_CHECKING:
    from collections.abc import Mapping

    import requests

    from drivefeed.sources.graph.account import GraphAccount

TIMEOUT_SECONDS = 15.0
"""For connecting and for each silence; a refresh makes two requests at most."""
_SCOPES = ("Files.Read.All",)
"""The least with which a person's files, and what is shared with them, can be followed."""


class PublicApp:
    """An app registration without a secret of its own, in whose name people sign in.

    Making it asks the sign-in service for its addresses.

    Raises:
        NeedsAttention: the authority is not one, or the CA file cannot be read.
        ValueError, requests.RequestException: the authority did not answer as one.
    """

    def __init__(self, account: GraphAccount) -> None:
        import msal

        for name in ("msal", "urllib3"):
            quiet = logging.getLogger(name)
            if quiet.level == logging.NOTSET:
                quiet.setLevel(logging.ERROR)
        if not account.login_url.startswith("https://"):
            raise NeedsAttention(
                f"The authority of account '{account.name}' is '{account.login_url}'; people can "
                "only be asked to sign in over https.",
                reason=Reason.ADDRESS_UNUSABLE,
            )
        # It advises answers by POST, which nobody could paste from a browser on another machine.
        warnings.filterwarnings("ignore", message="response_mode=", category=UserWarning)
        official = account.login_url in {cloud.login for cloud in CLOUDS.values()}
        self.account = account
        self._session = session_of(account)
        self._session.hooks["response"].append(self._note)
        self._last: tuple[int, Mapping[str, str]] = (0, {})
        self.cache = msal.SerializableTokenCache()
        self.app = msal.PublicClientApplication(
            account.client_id,
            authority=f"{account.login_url}/{account.tenant_id}",
            token_cache=self.cache,
            http_client=self._session,
            # Discovery asks Microsoft whether the authority is one of its own.
            instance_discovery=None if official else False,
        )

    @property
    def scopes(self) -> list[str]:
        """What people are asked to consent to; MSAL adds the scopes of the sign-in itself."""
        if self.account.cloud == "global":
            return list(_SCOPES)
        return [f"{CLOUDS[self.account.cloud].graph}/{name}" for name in _SCOPES]

    def last(self, *, now: int) -> tuple[int, float | None]:
        """Return the last answer's status, and how many seconds it wants us to wait.

        MSAL keeps both to itself.
        """
        status, headers = self._last
        return status, told_wait(headers, now=now)

    def _note(self, response: requests.Response, **_options: Any) -> None:
        self._last = (response.status_code, response.headers)

    def close(self) -> None:
        """Close connections."""
        self._session.close()

    def refreshed(self, home_account_id: str, claims: str | None) -> dict[str, Any]:
        """Use the refresh token in the cache; the cache has the new one afterwards.

        Args:
            home_account_id: whose token.
            claims: a claims challenge of Graph, as JSON.

        Returns:
            MSAL's result: ``access_token`` and ``expires_in``, or ``error``.
        """
        for known in self.app.get_accounts():
            if known["home_account_id"] == home_account_id:
                result = self.app.acquire_token_silent_with_error(
                    self.scopes, known, force_refresh=True, claims_challenge=claims
                )
                if result is not None:
                    return dict(result)
        return {"error": "invalid_grant", "error_description": "There is no refresh token."}

    def access_tokens(self, home_account_id: str) -> list[dict[str, str]]:
        """Return the access tokens in the cache that have not expired.

        They are looked for by person, not by scope: Entra may answer with other names of scopes
        than it was asked for.
        """
        kind = self.cache.CredentialType.ACCESS_TOKEN
        query = {"client_id": self.account.client_id, "home_account_id": home_account_id}
        return list(self.cache.search(kind, query=query))


def session_of(account: GraphAccount) -> requests.Session:
    """Return an HTTP client that goes the account's way out, with a connection for each request.

    Requests for tokens are far apart, and a device code is asked about as often as many servers
    close idle connections: one that was kept would now and then be closed under the question.
    """
    session: requests.Session = account.outbound.session(
        account.login_url, account.ca_file, timeout=TIMEOUT_SECONDS
    )
    session.headers["User-Agent"] = USER_AGENT
    session.headers["Connection"] = "close"
    return session
