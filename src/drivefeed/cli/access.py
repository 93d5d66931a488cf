"""Commands about sign-in and rights as they are typed; see :mod:`.commands` for the others."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - Typer reads the annotations
from typing import Annotated

import typer

_Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs, and nothing else.")]


def probe(
    account: Annotated[
        str | None, typer.Argument(help="Name or id of an account; all without.")
    ] = None,
    *,
    drive: Annotated[
        str | None,
        typer.Option(
            help="What to try: a drive's id, somebody's user principal name, or a folder's address "
            "in any form; without it, the connected drives, or the person's own OneDrive."
        ),
    ] = None,
    as_json: _Json = False,
) -> None:
    """Try what an account may do: sign in, list, read; name what is missing or too much.

    Exit code 1 if something is missing.
    """
    from drivefeed.cli.probe import show_probe

    show_probe(account, drive, as_json=as_json)


def registration(
    *,
    account: Annotated[
        str | None,
        typer.Option(help="An account that is here already: its tenant, app and certificate."),
    ] = None,
    tenant: Annotated[
        str | None, typer.Option(help="The tenant's id or domain, without an account.")
    ] = None,
    site: Annotated[
        str | None, typer.Option(help="Address of the site that the app may read.")
    ] = None,
    rights: Annotated[
        str, typer.Option(help="selected (one site) or read-all (every file).")
    ] = "selected",
    shell: Annotated[str, typer.Option(help="azure-cli or powershell.")] = "azure-cli",
    name: Annotated[str, typer.Option(help="What a new app is called.")] = "drivefeed",
    certificate: Annotated[
        Path | None, typer.Option(help="A certificate's public part, as PEM.", readable=False)
    ] = None,
    cloud: Annotated[str, typer.Option(help="global, us_l4, us_l5 or china.")] = "global",
    browse: Annotated[
        bool, typer.Option("--browse", help="Also ask for Sites.Read.All, to choose sites by name.")
    ] = False,
    page: Annotated[
        bool, typer.Option("--page", help="A page for the tenant's administrator, as HTML.")
    ] = False,
    as_json: _Json = False,
) -> None:
    """Write the script, or a page, with which an administrator lets drivefeed in.

    It registers the app, uploads the certificate's public part, asks for the permission, gives
    consent and grants the site. Nothing is sent anywhere: the text goes to standard output.
    """
    from drivefeed.cli.registration import Asked, show_registration

    asked = Asked(account, tenant, site, rights, name, certificate, cloud, browse)
    show_registration(asked, shell, page=page, as_json=as_json)
