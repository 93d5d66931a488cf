"""The accounts that a process reads through: opened from the catalog, and looked after."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from drivefeed.catalog.account_states import account_revisions, note_state, note_unreached
from drivefeed.catalog.accounts import (
    Account,
    SignInKind,
    all_accounts,
    declare_account,
)
from drivefeed.catalog.connecting import ensure_org
from drivefeed.catalog.credentials import CredentialKind, load
from drivefeed.catalog.renewal import accept_certificate
from drivefeed.catalog.resuming import resume_account
from drivefeed.domain.errors import NeedsAttention, PartDown
from drivefeed.domain.reasons import Reason
from drivefeed.domain.redact import hide, redact
from drivefeed.outbound import Outbound
from drivefeed.secrets.certificates import read_certificate
from drivefeed.sources.graph.account import (
    ClientCertificate,
    ClientSecret,
    GraphAccount,
    SignedInUser,
    SignIn,
    WorkloadIdentity,
)
from drivefeed.sources.graph.auth import AppCredential
from drivefeed.sources.graph.delegated import DelegatedCredential
from drivefeed.sources.graph.renewing import RenewingCredential
from drivefeed.sources.graph.watched import WatchedCredential

if TYPE_CHECKING:
    from collections.abc import Callable

    from drivefeed.catalog.engine import Catalog
    from drivefeed.ports import Checkpoint, Clock
    from drivefeed.secrets.ring import KeyRing
    from drivefeed.sources.graph.auth import Credential
    from drivefeed.sources.graph.tokens import TokenStore

_LOOK_AGAIN_MS = 60_000


class AccountBook:
    """Keeps a dictionary of accounts as the catalog has them; cheap while nothing changes.

    Args:
        accounts: filled and changed in place; the source looks into it for every call.
    """

    def __init__(
        self,
        catalog: Catalog,
        ring: KeyRing,
        accounts: dict[str, GraphAccount],
        outbound: Outbound | None = None,
    ) -> None:
        self._catalog = catalog
        self._outbound = outbound or Outbound.from_environment()
        self._ring = ring
        self._accounts = accounts
        self._declared: dict[str, SignIn] = {}
        self._seen: dict[str, int] = {}
        self._failed: dict[str, NeedsAttention] = {}

    @property
    def left_out(self) -> frozenset[str]:
        """Why accounts could not be opened, one sentence each."""
        return frozenset(str(error) for error in self._failed.values())

    def trouble(self, account_id: str) -> NeedsAttention | None:
        """Return why an account could not be opened the last time it was looked at."""
        return self._failed.get(account_id)

    async def declare(self, *, org: str, name: str, values: dict[str, Any], sign_in: SignIn) -> str:
        """Make an account of the settings known; return its id. It opens with :meth:`refresh`.

        Args:
            values: columns of its row.
            sign_in: stays in this process's memory; the settings keep it.
        """
        org_id = await ensure_org(self._catalog, org)
        account_id = await declare_account(self._catalog, org_id=org_id, name=name, values=values)
        if self._declared.get(account_id) != sign_in:
            self._declared[account_id] = sign_in
            self._seen.pop(account_id, None)
        return account_id

    async def refresh(self) -> list[str]:
        """Open what is new or changed, and forget what is gone; return the names of what changed.

        An account whose credential cannot be opened is left out, with the sentence as its state,
        and looked at again the next time. What waited for a changed account is due at once.
        """
        now = await account_revisions(self._catalog)
        if now == self._seen and not self._failed:
            return []
        for account_id in (self._accounts.keys() | self._failed.keys()) - now.keys():
            self._accounts.pop(account_id, None)
            self._failed.pop(account_id, None)
        changed = []
        for row in await all_accounts(self._catalog):
            before = self._seen.get(row.account_id)
            if before == row.revision and row.account_id not in self._failed:
                continue
            if not await self._open(row):
                continue
            changed.append(row.name)
            if before is not None:
                await resume_account(self._catalog, row.account_id)
        self._seen = now
        return changed

    async def _open(self, row: Account) -> bool:
        try:
            sign_in = await sign_in_of(
                self._catalog, self._ring, row, self._declared.get(row.account_id)
            )
            pending = await pending_of(self._catalog, self._ring, row)
        except NeedsAttention as error:
            self._accounts.pop(row.account_id, None)
            if str(self._failed.get(row.account_id)) != str(error):
                await note_state(self._catalog, row.account_id, error.reason, redact(str(error)))
            self._failed[row.account_id] = error
            return False
        self._failed.pop(row.account_id, None)
        self._accounts[row.account_id] = graph_account(row, sign_in, self._outbound, pending)
        return True


class AccountStates:
    """Writes what became of sign-ins, and only what is news."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._last: dict[str, tuple[int, str | None, int]] = {}

    async def note(self, account: GraphAccount, error: NeedsAttention | PartDown | None) -> None:
        """Record a token (None), a refusal, or that nobody answered.

        What waited for a cured account goes on.

        The catalog is asked where this process has news, and once a minute, because other
        processes write there too.
        """
        reason = error.reason if isinstance(error, NeedsAttention) else None
        outcome = "no answer" if isinstance(error, PartDown) else reason
        now = self._catalog.clock.now()
        revision, before, at = self._last.get(account.account_id, (0, None, 0))
        if (revision, before) == (account.revision, outcome) and now - at < _LOOK_AGAIN_MS:
            return
        words = redact(str(error)) if error is not None else ""
        if isinstance(error, PartDown):
            await note_unreached(self._catalog, account.account_id, words)
            self._last[account.account_id] = (account.revision, outcome, now)
            return
        told = await note_state(self._catalog, account.account_id, reason, words)
        self._last[account.account_id] = (account.revision, outcome, now)
        if told and reason is None:
            await resume_account(self._catalog, account.account_id)

    async def accept(self, account: GraphAccount) -> None:
        """Record that Microsoft accepted an account's new certificate; what it had goes."""
        assert account.pending is not None
        made = await asyncio.to_thread(read_certificate, account.pending.pem.encode())
        await accept_certificate(
            self._catalog,
            account.account_id,
            revision=account.revision,
            expires_at=made.expires_at,
        )


def credentials_of(
    store: TokenStore, states: AccountStates, clock: Clock, checkpoint: Checkpoint
) -> Callable[[GraphAccount], Credential]:
    """Return what makes the credential of an account: an app's or a person's, watched."""

    def make(account: GraphAccount) -> Credential:
        inner: Credential
        if account.is_delegated:
            inner = DelegatedCredential(account, store, clock=clock, checkpoint=checkpoint)
        else:
            inner = AppCredential(account, clock)
            if account.pending is not None:
                new = AppCredential(replace(account, sign_in=account.pending, pending=None), clock)
                inner = RenewingCredential(new, inner, lambda: states.accept(account))
        return WatchedCredential(inner, lambda error: states.note(account, error))

    return make


async def sign_in_of(
    catalog: Catalog, ring: KeyRing, row: Account, declared: SignIn | None
) -> SignIn:
    """Return how an account signs in, with its credential opened.

    Raises:
        NeedsAttention: it has none, or it cannot be opened.
    """
    if row.declared:
        if declared is None:
            raise _incomplete(
                f"Account '{row.name}' came from the settings, and is not in them any more."
            )
        return declared
    match row.sign_in:
        case SignInKind.WORKLOAD if row.token_file:
            return WorkloadIdentity(row.token_file)
        case SignInKind.USER if row.user_id:
            return SignedInUser(row.user_id, row.user_name or "")
        case SignInKind.SECRET:
            return ClientSecret(await _opened(catalog, ring, row, CredentialKind.SECRET))
        case SignInKind.CERTIFICATE:
            return ClientCertificate(await _opened(catalog, ring, row, CredentialKind.CERTIFICATE))
        case _:
            raise _incomplete(f"Account '{row.name}' has no sign-in.")


async def pending_of(catalog: Catalog, ring: KeyRing, row: Account) -> ClientCertificate | None:
    """Return the new certificate of an account that waits for its first sign-in, or None.

    Raises:
        NeedsAttention: it cannot be opened.
    """
    if not row.has_pending:
        return None
    found = await load(catalog, ring, row.account_id, CredentialKind.PENDING)
    if found is None:
        # It was accepted since the row was read.
        return None
    pem = found.plain.decode()
    hide(pem)
    return ClientCertificate(pem)


async def _opened(catalog: Catalog, ring: KeyRing, row: Account, kind: CredentialKind) -> str:
    found = await load(catalog, ring, row.account_id, kind)
    if found is None:
        raise _incomplete(f"Account '{row.name}' has no {kind} any more.")
    secret = found.plain.decode()
    hide(secret)
    return secret


def graph_account(
    row: Account,
    sign_in: SignIn,
    outbound: Outbound,
    pending: ClientCertificate | None = None,
) -> GraphAccount:
    """Return an account of the catalog as the source takes it."""
    return GraphAccount(
        account_id=row.account_id,
        name=row.name,
        tenant_id=row.tenant_id,
        client_id=row.client_id,
        sign_in=sign_in,
        authority=row.authority,
        graph_url=row.graph_url,
        ca_file=row.ca_file,
        cloud=row.cloud,
        revision=row.revision,
        outbound=outbound,
        pending=pending,
    )


def _incomplete(words: str) -> NeedsAttention:
    return NeedsAttention(
        f"{words} Run 'drivefeed account reconnect', or remove the account.",
        reason=Reason.SIGN_IN_INCOMPLETE,
    )
