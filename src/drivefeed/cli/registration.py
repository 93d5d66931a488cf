"""``drivefeed registration``: the script or the page for a tenant's administrator."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - a field of a dataclass
from typing import TYPE_CHECKING, TypeVar

import typer

from drivefeed.cli.context import existing_parts, run
from drivefeed.cli.output import print_json
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.services.registration import (
    Registration,
    Rights,
    Shell,
    public_part,
    script,
)
from drivefeed.services.registration import (
    page as page_of,
)
from drivefeed.sources.graph.account import ClientCertificate

if TYPE_CHECKING:
    from drivefeed.sources.graph.account import GraphAccount

_Choice = TypeVar("_Choice", Rights, Shell)


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of the command."""

    account: str | None
    tenant: str | None
    site: str | None
    rights: str
    name: str
    certificate: Path | None
    cloud: str
    browse: bool


def show_registration(asked: Asked, shell: str, *, page: bool, as_json: bool) -> None:
    """Print the script, or the page."""
    rights = _one_of(Rights, asked.rights, "--rights")
    kind = _one_of(Shell, shell, "--shell")
    known = run(_account(asked.account)) if asked.account is not None else None
    tenant = asked.tenant or (known.tenant_id if known else None)
    if tenant is None:
        raise typer.BadParameter("Say --account or --tenant.")
    wanted = Registration(
        app_name=asked.name,
        tenant=tenant,
        rights=rights,
        site_url=asked.site,
        client_id=known.client_id if known else None,
        certificate=_certificate(asked.certificate, known),
        cloud=known.cloud if known else asked.cloud,
        browse=asked.browse,
    )
    text = page_of(wanted) if page else script(wanted, kind)
    if as_json:
        names = list(wanted.permissions)
        print_json({"kind": "page" if page else kind, "permissions": names, "text": text})
    else:
        sys.stdout.write(text)


def _one_of(kind: type[_Choice], text: str, option: str) -> _Choice:
    try:
        return kind(text)
    except ValueError:
        raise typer.BadParameter(f"{option} is one of {', '.join(kind)}.") from None


def _certificate(file: Path | None, account: GraphAccount | None) -> str | None:
    """Return the public part of the certificate that was named, or of the account's."""
    if file is not None:
        try:
            text = file.read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            raise NeedsAttention(
                f"The certificate '{file}' cannot be read as PEM ({error}).",
                reason=Reason.MISCONFIGURED,
            ) from error
        return public_part(text) or ""
    if account is not None and account.pending is not None:
        return public_part(account.pending.pem)
    if account is not None and isinstance(account.sign_in, ClientCertificate):
        return public_part(account.sign_in.pem)
    return None


async def _account(name: str) -> GraphAccount:
    async with existing_parts() as parts:
        for account_id, one in parts.accounts.items():
            if name in {account_id, one.name}:
                return one
    raise NeedsAttention(f"There is no account '{name}'.", reason=Reason.MISCONFIGURED)
