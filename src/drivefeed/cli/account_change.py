"""``account add``, ``reconnect`` and ``remove``."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from drivefeed.account_parts import AccountParts, open_accounts
from drivefeed.bootstrap import open_memory
from drivefeed.catalog.account_removal import remove_account as remove_row
from drivefeed.catalog.accounts import (
    Account,
    SignInKind,
    all_accounts,
    change_account,
    find_account,
)
from drivefeed.catalog.accounts import add_account as add_row
from drivefeed.catalog.connecting import ensure_org
from drivefeed.catalog.credentials import ensure_key
from drivefeed.catalog.orgs import all_orgs
from drivefeed.catalog.renewal import offer_certificate
from drivefeed.catalog.resuming import resume_account
from drivefeed.certificate_files import authorities_in
from drivefeed.cli.account_show import try_sign_in
from drivefeed.cli.account_sign_in import person_signs_in
from drivefeed.cli.account_told import tell_account
from drivefeed.cli.account_way import bring
from drivefeed.cli.context import existing_settings, os_user, run
from drivefeed.cli.output import escape, print_json, say
from drivefeed.cli.words import count_of
from drivefeed.domain.errors import AlreadyExists, NeedsAttention, NotFound
from drivefeed.domain.names import is_guid, is_tenant, name_problem
from drivefeed.domain.reasons import Reason
from drivefeed.services.accounts import graph_account
from drivefeed.sources.graph.account import CLOUDS, GraphAccount, SignedInUser

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from drivefeed.cli.account_show import Tried
    from drivefeed.cli.account_way import Brought, Way

_LONGEST_NAME = 80
DEFAULT_ORG = "default"
_KEPT_MEANWHILE = frozenset({SignInKind.SECRET, SignInKind.CERTIFICATE, SignInKind.WORKLOAD})
"""What an app signs in by until Microsoft has accepted its new certificate."""


@dataclass(frozen=True, slots=True)
class Place:
    """Which app, in which tenant of which cloud."""

    tenant_id: str | None
    client_id: str
    cloud: str
    authority: str | None
    graph_url: str | None
    ca_file: Path | None

    def columns(self, *, is_personal: bool) -> dict[str, Any]:
        """Return it as columns of an account.

        Raises:
            typer.BadParameter: something is missing, or is none of its kind.
        """
        if self.cloud not in CLOUDS:
            raise typer.BadParameter(f"There is no cloud '{self.cloud}': {', '.join(CLOUDS)}.")
        if not self.tenant_id and not is_personal:
            raise typer.BadParameter("An app signs in to one tenant; name it with --tenant.")
        # What is wrong is not shown: it may be a secret that was pasted into the wrong place.
        if self.tenant_id and not is_tenant(self.tenant_id.strip()):
            raise typer.BadParameter(
                "--tenant is a tenant's id, or one of its domains such as contoso.onmicrosoft.com; "
                "for people also organizations, consumers or common."
            )
        if not is_guid(self.client_id.strip()):
            raise typer.BadParameter(
                "--client-id is the app's Application (client) ID, from the overview of its app "
                "registration: 00000000-0000-0000-0000-000000000000 in form."
            )
        if self.authority and not self.authority.startswith("https://"):
            raise typer.BadParameter("The authority is an address that begins with https://.")
        if self.ca_file and not self.ca_file.is_file():
            raise typer.BadParameter(f"There is no file '{self.ca_file}'.")
        if self.ca_file:
            authorities_in(str(self.ca_file))
        return {
            "tenant_id": (self.tenant_id or "common").strip(),
            "client_id": self.client_id.strip(),
            "cloud": self.cloud,
            "authority": self.authority,
            "graph_url": self.graph_url,
            "ca_file": str(self.ca_file.absolute()) if self.ca_file else None,
        }


def add_account(
    name: str, org: str | None, way: Way, place: Place, *, test: bool, as_json: bool
) -> None:
    """Add an account; exit code 1 if it is there, but cannot sign in."""
    if way.chosen is None:
        raise typer.BadParameter(
            "Say how it signs in: --secret-file, --secret-stdin, --certificate, "
            "--make-certificate, --workload-token-file, --device or --browser."
        )
    problem = name_problem(name.strip(), longest=_LONGEST_NAME)
    if problem is not None:
        raise typer.BadParameter(problem)
    columns = place.columns(is_personal=way.is_personal)
    account, brought, tried = run(_add(name.strip(), org, way, columns, test=test, as_json=as_json))
    tell_account(f"Account '{account.name}' was added.", account, brought, tried, as_json=as_json)


async def _add(
    name: str,
    org: str | None,
    way: Way,
    columns: dict[str, Any],
    *,
    test: bool,
    as_json: bool,
) -> tuple[Account, Brought, Tried | None]:
    async with signing_parts() as parts:
        org_id, org_name = await _org(parts, org)
        if any(
            one.name == name and one.org_id == org_id for one in await all_accounts(parts.catalog)
        ):
            raise AlreadyExists(
                f"There is an account '{name}' already. Choose another name, or give it a new "
                "sign-in with 'drivefeed account reconnect'."
            )
        await _can_seal(parts)
        draft = GraphAccount(
            account_id="",
            name=name,
            sign_in=SignedInUser("", ""),
            outbound=parts.outbound,
            **columns,
        )
        brought = await _bring(parts, draft, way, as_json=as_json)
        await add_row(
            parts.catalog,
            parts.ring,
            org_id=org_id,
            name=name,
            values={**columns, **brought.values},
            credential=brought.credential,
            actor=os_user(),
        )
        tried = await _tried(parts, name, org_name, way, test=test)
        return await find_account(parts.catalog, name, org=org_name), brought, tried


def reconnect_account(name: str, org: str | None, way: Way, *, test: bool, as_json: bool) -> None:
    """Give an account a new sign-in; exit code 1 if it cannot sign in."""
    _ = way.chosen
    account, brought, tried, woken = run(_reconnect(name, org, way, test=test, as_json=as_json))
    words = f"Account '{account.name}' has a new sign-in."
    if account.has_pending:
        words = f"Account '{account.name}' has a new certificate, beside what it signs in by."
    if woken:
        words += f" {count_of(woken, 'file')} that waited for it will go on."
    tell_account(words, account, brought, tried, as_json=as_json)


async def _reconnect(
    name: str, org: str | None, way: Way, *, test: bool, as_json: bool
) -> tuple[Account, Brought, Tried | None, int]:
    async with signing_parts() as parts:
        row = await find_account(parts.catalog, name, org=org)
        if row.declared:
            raise NeedsAttention(
                f"Account '{row.name}' and its secret come from the settings; change them there, "
                "and start drivefeed again.",
                reason=Reason.MISCONFIGURED,
            )
        if way.chosen is None and row.user_id is None:
            raise typer.BadParameter(
                "Say what is new: --secret-file, --secret-stdin, --certificate or "
                "--make-certificate."
            )
        await _can_seal(parts)
        # Somebody who signed in before is the only one who may sign in again.
        person = SignedInUser(row.user_id or "", row.user_name or "")
        before = graph_account(row, person, parts.outbound)
        brought = await _bring(parts, before, way, as_json=as_json)
        if brought.certificate is not None and row.sign_in in _KEPT_MEANWHILE:
            await offer_certificate(
                parts.catalog,
                parts.ring,
                row.account_id,
                pem=brought.certificate.pem.encode(),
                actor=os_user(),
            )
        else:
            await change_account(
                parts.catalog,
                parts.ring,
                row.account_id,
                values=brought.values,
                credential=brought.credential,
                actor=os_user(),
            )
        tried = await _tried(parts, row.name, row.org, way, test=test)
        woken = 0
        if tried is None or tried.can:
            woken = await resume_account(parts.catalog, row.account_id)
        return await find_account(parts.catalog, row.account_id), brought, tried, woken


def forget_account(name: str, org: str | None, *, as_json: bool) -> None:
    """Remove an account that no drive is read through."""
    account = run(_forget(name, org))
    if as_json:
        print_json({"removed": account.name})
    else:
        say(f"Account '{escape(account.name)}' and its secrets were removed.")


async def _forget(name: str, org: str | None) -> Account:
    async with open_memory(existing_settings()) as catalog:
        row = await find_account(catalog, name, org=org)
        await remove_row(catalog, row, actor=os_user())
    return row


@asynccontextmanager
async def signing_parts() -> AsyncIterator[AccountParts]:
    """Open what commands about accounts need."""
    settings = existing_settings()
    async with open_memory(settings) as catalog:
        yield await open_accounts(settings, catalog)


async def _can_seal(parts: AccountParts) -> None:
    """Find out whether there is a key to seal with, before anybody signs in for nothing.

    Raises:
        NeedsAttention: there is none; the sentence says what to do.
    """
    async with parts.catalog.read() as connection:
        await ensure_key(connection, parts.ring)
    await asyncio.to_thread(lambda: parts.ring.newest)


async def _bring(parts: AccountParts, account: GraphAccount, way: Way, *, as_json: bool) -> Brought:
    clock = parts.catalog.clock
    return await bring(
        way,
        name=account.name,
        now=clock.now(),
        sign_in=lambda: person_signs_in(
            account, clock=clock, by_browser=way.browser, as_json=as_json
        ),
    )


async def _tried(parts: AccountParts, name: str, org: str, way: Way, *, test: bool) -> Tried | None:
    """Sign in once, unless nobody expects it to work yet."""
    if not test or way.make_certificate:
        return None
    await parts.book.refresh()
    return await try_sign_in(parts, await find_account(parts.catalog, name, org=org))


async def _org(parts: AccountParts, named: str | None) -> tuple[str, str]:
    """Return the org an account is for: the named one, or the only one."""
    known = await all_orgs(parts.catalog)
    if named is not None:
        for one in known:
            if one.name == named:
                return one.org_id, one.name
        raise NotFound(
            f"There is no organization '{named}'. Make it with 'drivefeed org add', or choose "
            f"from: {', '.join(one.name for one in known) or 'none'}."
        )
    if len(known) > 1:
        raise typer.BadParameter(
            f"Say with --org whose it is: {', '.join(one.name for one in known)}."
        )
    if known:
        return known[0].org_id, known[0].name
    return await ensure_org(parts.catalog, DEFAULT_ORG), DEFAULT_ORG
