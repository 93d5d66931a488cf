"""``account list``, ``show``, ``test`` and ``certificate``."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import typer

from drivefeed.account_parts import AccountParts, open_accounts
from drivefeed.bootstrap import open_memory
from drivefeed.catalog.account_states import AccountState
from drivefeed.catalog.accounts import Account, SignInKind, all_accounts, find_account
from drivefeed.catalog.credentials import CredentialKind, load
from drivefeed.cli.account_clock import clock_words
from drivefeed.cli.context import EXIT_NOT_CLEAN, existing_settings, run
from drivefeed.cli.output import escape, new_table, print_json, say
from drivefeed.cli.words import count_of, local_time, meaning_of, remedy_of
from drivefeed.domain.errors import DrivefeedError, NeedsAttention, NotFound
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph.claims import TokenClaims, read_claims

if TYPE_CHECKING:
    from pathlib import Path

    from drivefeed.secrets.certificates import Certificate

_WAYS = {
    SignInKind.SECRET: "client secret",
    SignInKind.CERTIFICATE: "certificate",
    SignInKind.WORKLOAD: "workload identity",
    SignInKind.USER: "a person",
    None: "nothing yet",
}
_COLOURS = {
    AccountState.OK: "green",
    AccountState.UNREACHED: "yellow",
    AccountState.NEEDS_SIGN_IN: "red",
    AccountState.MISCONFIGURED: "red",
    AccountState.BLOCKED: "red",
}
_SAID_WITH = frozenset({Reason.SECRETS_LOCKED})
"""Reasons whose sentence says what to do, each time something else."""


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of a sign-in.

    Attributes:
        can: whether there is a token.
        words: as whom and with which rights, or why not.
        remedy: what to do, where the words do not say it.
    """

    can: bool
    words: str
    claims: TokenClaims | None = None
    remedy: str = ""


async def try_sign_in(parts: AccountParts, row: Account) -> Tried:
    """Sign in once; the account's state is kept as it turns out."""
    account = parts.accounts.get(row.account_id)
    if account is None:
        trouble = parts.book.trouble(row.account_id)
        return Tried(can=False, words=str(trouble or f"Account '{row.name}' cannot be opened."))
    credential = parts.credential(account)
    try:
        token = await credential.get_token(account.scope)
    except NeedsAttention as error:
        return Tried(can=False, words=str(error), remedy=remedy_of(error.reason))
    except DrivefeedError as error:
        return Tried(can=False, words=str(error))
    finally:
        await credential.close()
    claims = read_claims(token.token)
    words = f"{_rights(row, claims)} {await _renewal(parts, row)}".rstrip()
    # It works today; certificates and tokens do not for long where the clock is wrong.
    clock = await clock_words(account, parts.catalog.clock)
    return Tried(can=True, words=f"{words} {clock}".rstrip(), claims=claims)


async def _renewal(parts: AccountParts, row: Account) -> str:
    """Say what became of a new certificate that waited for this sign-in."""
    if not row.has_pending:
        return ""
    if (await find_account(parts.catalog, row.account_id)).has_pending:
        return pending_words(row.name)
    return (
        "Microsoft took the new certificate, so what the account signed in by before was forgotten "
        "here; delete it at the app registration too."
    )


def pending_words(name: str) -> str:
    """Say that an account has a new certificate that Microsoft does not know yet."""
    return (
        f"Its new certificate is not accepted yet, so it goes on with what it had. Upload it: "
        f"'drivefeed account certificate {name} --output FILE' writes it."
    )


def _rights(row: Account, claims: TokenClaims | None) -> str:
    who = row.user_name or (claims and (claims.user or claims.app_name))
    begin = f"Account '{row.name}' signs in" + (f" as {who}" if who else f" as app {row.client_id}")
    if claims is None:
        return f"{begin}; the token does not say with which rights."
    rights = sorted(claims.permissions)
    if not rights:
        return (
            f"{begin}, and has no rights yet. Give the app Files.Read.All or Sites.Selected, and "
            "have an administrator consent."
        )
    kind = "permissions" if row.sign_in is SignInKind.USER else "application permissions"
    return f"{begin}, with the {kind} {', '.join(rights)}."


def list_accounts(*, as_json: bool) -> None:
    """List accounts."""
    found = run(_all())
    if as_json:
        print_json([asdict(one) for one in found])
        return
    if not found:
        say("There is no account yet. Add one with 'drivefeed account add'.")
        return
    table = new_table("account", "org", "signs in by", "tenant", "state", "ends", "drives")
    for one in found:
        way = _WAYS[one.sign_in] + (" (settings)" if one.declared else "")
        table.add_row(
            escape(one.name),
            escape(one.org),
            escape(one.user_name or way),
            escape(one.tenant_id),
            f"[{_COLOURS[one.state]}]{one.state.replace('_', ' ')}[/]",
            _day(one.expires_at),
            str(one.drives),
        )
    say(table)
    for one in found:
        if one.reason is not None:
            say(f"{escape(one.name)}: {escape(_advice(one))}")
        if one.has_pending:
            say(f"{escape(one.name)}: {escape(pending_words(one.name))}")


def _advice(one: Account) -> str:
    """Return what to do about an account; what was said of it where that tells it better."""
    if one.reason in _SAID_WITH and one.detail:
        return one.detail
    return remedy_of(one.reason or "")


async def _all() -> list[Account]:
    async with open_memory(existing_settings()) as catalog:
        return await all_accounts(catalog)


def show_account(name: str, org: str | None, *, as_json: bool) -> None:
    """Show an account's row, in words."""
    one = run(_one(name, org))
    if as_json:
        print_json(asdict(one))
        return
    facts = {
        "account": one.name,
        "organization": one.org,
        "signs in by": _WAYS[one.sign_in] + (" (from the settings)" if one.declared else ""),
        "person": one.user_name,
        "token file": one.token_file,
        "tenant": one.tenant_id,
        "app": one.client_id,
        "cloud": one.cloud,
        "authority": one.authority,
        "Graph": one.graph_url,
        "CA file": one.ca_file,
        "ends": _day(one.expires_at),
        "reads": count_of(one.drives, "drive"),
        "state": one.state.replace("_", " "),
    }
    for label, value in facts.items():
        if value:
            say(f"{label:>13}  {escape(str(value))}")
    if one.has_pending:
        say(f"{'renewal':>13}  {escape(pending_words(one.name))}")
    if one.reason is None and one.detail:
        say(f"{'said':>13}  {escape(one.detail)}")
    if one.reason is not None:
        say(f"{'why':>13}  {meaning_of(one.reason)}")
        say(f"{'said':>13}  {escape(one.detail or '')}")
        if one.reason not in _SAID_WITH:
            say(f"{'do':>13}  {remedy_of(one.reason)}")


async def _one(name: str, org: str | None) -> Account:
    async with open_memory(existing_settings()) as catalog:
        return await find_account(catalog, name, org=org)


def tell_sign_in(name: str, org: str | None, *, as_json: bool) -> None:
    """Sign in; exit code 1 if it is refused."""
    row, tried = run(_sign_in(name, org))
    if as_json:
        claims = tried.claims
        print_json(
            {
                "account": row.name,
                "can_sign_in": tried.can,
                "words": tried.words,
                "state": row.state,
                "reason": row.reason,
                "user": row.user_name or (claims.user if claims else None),
                "tenant_id": claims.tenant_id if claims else None,
                "permissions": sorted(claims.permissions) if claims else None,
            }
        )
    else:
        say(escape(tried.words))
        if tried.remedy:
            say(tried.remedy)
    if not tried.can:
        raise typer.Exit(EXIT_NOT_CLEAN)


async def _sign_in(name: str, org: str | None) -> tuple[Account, Tried]:
    settings = existing_settings()
    async with open_memory(settings) as catalog:
        parts = await open_accounts(settings, catalog)
        tried = await try_sign_in(parts, await find_account(catalog, name, org=org))
        return await find_account(catalog, name, org=org), tried


def show_certificate(name: str, org: str | None, out: Path | None, *, as_json: bool) -> None:
    """Print or write the public part of a certificate."""
    found, is_pending = run(_certificate(name, org))
    if out is not None:
        out.write_text(found.public_pem, encoding="ascii")
    if as_json:
        facts: dict[str, Any] = asdict(found)
        del facts["pem"]
        print_json({**facts, "pending": is_pending})
        return
    say(certificate_words(found))
    if is_pending:
        say("It is new: the account signs in by it once it is uploaded to the app registration.")
    if out is not None:
        say(f"The certificate was written to '{escape(str(out))}'.")
    else:
        say(found.public_pem.strip())


async def _certificate(name: str, org: str | None) -> tuple[Certificate, bool]:
    """Return the certificate to be uploaded: the new one where there is one, and if it is."""
    from drivefeed.account_parts import open_ring
    from drivefeed.secrets.certificates import read_certificate

    settings = existing_settings()
    async with open_memory(settings) as catalog:
        row = await find_account(catalog, name, org=org)
        kind = CredentialKind.PENDING if row.has_pending else CredentialKind.CERTIFICATE
        kept = await load(catalog, open_ring(settings), row.account_id, kind)
    if kept is None:
        raise NotFound(f"Account '{row.name}' signs in by {_WAYS[row.sign_in]}, not a certificate.")
    return await asyncio.to_thread(read_certificate, kept.plain), row.has_pending


def certificate_words(one: Certificate) -> str:
    """Say what tells a certificate from others."""
    return (
        f"Certificate {escape(one.subject)}\n"
        f"  thumbprint (SHA-1)  {one.sha1}\n"
        f"  thumbprint (SHA-256)  {one.sha256}\n"
        f"  good until  {_day(one.expires_at)}"
    )


def _day(at: int | None) -> str:
    return local_time(at).strftime("%Y-%m-%d") if at is not None else ""
