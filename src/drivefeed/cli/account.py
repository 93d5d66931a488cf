"""``account``: its commands as they are typed. Nothing is imported before one runs."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from drivefeed.cli.once import Commands

account_app = Commands(
    name="account",
    help="Sign-ins to Microsoft: add, test, renew and remove them.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["--help", "-h"]},
)

_LONGEST_DAY = 12
_APP, _PERSON, _PLACE = "An app signs in by", "A person signs in by", "Where"


def _day(text: str) -> datetime:
    try:
        return datetime.strptime(text.strip(), "%Y-%m-%d")  # noqa: DTZ007 - a day has no zone
    except ValueError:
        # What is longer than a day was perhaps meant for another option: a secret, say.
        told = f"it is '{text}'; " if len(text) <= _LONGEST_DAY else ""
        raise typer.BadParameter(f"{told}allowed: a day such as 2027-01-31.") from None


Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs, and nothing else.")]
Name = Annotated[str, typer.Argument(help="What connections call the account.")]
Org = Annotated[str | None, typer.Option("--org", help="The organization that owns it.")]
SecretFile = Annotated[
    Path | None,
    typer.Option("--secret-file", help="A file with a client secret.", rich_help_panel=_APP),
]
SecretStdin = Annotated[
    bool,
    typer.Option("--secret-stdin", help="A client secret, read from here.", rich_help_panel=_APP),
]
CertificateFile = Annotated[
    Path | None,
    typer.Option(
        "--certificate", help="A PFX or PEM file with its private key.", rich_help_panel=_APP
    ),
]
PasswordStdin = Annotated[
    bool,
    typer.Option("--password-stdin", help="The certificate file's password.", rich_help_panel=_APP),
]
MakeCertificate = Annotated[
    bool,
    typer.Option(
        "--make-certificate",
        help="A certificate made here; its private key never leaves.",
        rich_help_panel=_APP,
    ),
]
WorkloadTokenFile = Annotated[
    Path | None,
    typer.Option(
        "--workload-token-file",
        help="A token that the platform keeps in a file (federated credential).",
        rich_help_panel=_APP,
    ),
]
Device = Annotated[
    bool,
    typer.Option("--device", help="A code, entered on any device.", rich_help_panel=_PERSON),
]
Browser = Annotated[
    bool,
    typer.Option(
        "--browser",
        help="A browser on this machine; from another, the address it ends at can be pasted.",
        rich_help_panel=_PERSON,
    ),
]
Expires = Annotated[
    datetime | None,
    typer.Option(
        "--expires",
        parser=_day,
        metavar="YYYY-MM-DD",
        help="The day the client secret ends, to be warned before.",
        rich_help_panel=_APP,
    ),
]
NoTest = Annotated[bool, typer.Option("--no-test", help="Do not try to sign in at the end.")]


@account_app.command()
def add(
    name: Name,
    *,
    client_id: Annotated[
        str, typer.Option("--client-id", help="The app registration's application (client) id.")
    ],
    tenant: Annotated[
        str | None,
        typer.Option(
            "--tenant",
            help="The tenant's id or domain; for people also organizations, consumers or common.",
        ),
    ] = None,
    secret_file: SecretFile = None,
    secret_stdin: SecretStdin = False,
    certificate: CertificateFile = None,
    password_stdin: PasswordStdin = False,
    make_certificate: MakeCertificate = False,
    workload_token_file: WorkloadTokenFile = None,
    device: Device = False,
    browser: Browser = False,
    expires: Expires = None,
    org: Org = None,
    cloud: Annotated[
        str,
        typer.Option("--cloud", help="global, us_l4, us_l5 or china.", rich_help_panel=_PLACE),
    ] = "global",
    authority: Annotated[
        str | None,
        typer.Option(
            "--authority", help="Sign-in service, if not the cloud's own.", rich_help_panel=_PLACE
        ),
    ] = None,
    graph_url: Annotated[
        str | None,
        typer.Option("--graph-url", help="Graph, if not the cloud's own.", rich_help_panel=_PLACE),
    ] = None,
    ca_file: Annotated[
        Path | None,
        typer.Option(
            "--ca-file", help="PEM file with certificates to trust too.", rich_help_panel=_PLACE
        ),
    ] = None,
    no_test: NoTest = False,
    as_json: Json = False,
) -> None:
    """Add a way to sign in to Microsoft. Secrets are read from files or standard input only."""
    from drivefeed.cli.account_change import Place, add_account
    from drivefeed.cli.account_way import Way

    way = Way(
        secret_file=secret_file,
        secret_stdin=secret_stdin,
        certificate=certificate,
        password_stdin=password_stdin,
        make_certificate=make_certificate,
        workload_token_file=workload_token_file,
        device=device,
        browser=browser,
        expires=expires,
    )
    place = Place(
        tenant_id=tenant,
        client_id=client_id,
        cloud=cloud,
        authority=authority,
        graph_url=graph_url,
        ca_file=ca_file,
    )
    add_account(name, org, way, place, test=not no_test, as_json=as_json)


@account_app.command()
def reconnect(
    name: Name,
    *,
    secret_file: SecretFile = None,
    secret_stdin: SecretStdin = False,
    certificate: CertificateFile = None,
    password_stdin: PasswordStdin = False,
    make_certificate: MakeCertificate = False,
    workload_token_file: WorkloadTokenFile = None,
    device: Device = False,
    browser: Browser = False,
    expires: Expires = None,
    org: Org = None,
    no_test: NoTest = False,
    as_json: Json = False,
) -> None:
    """Give an account a new sign-in; what waited for it goes on from where it was."""
    from drivefeed.cli.account_change import reconnect_account
    from drivefeed.cli.account_way import Way

    way = Way(
        secret_file=secret_file,
        secret_stdin=secret_stdin,
        certificate=certificate,
        password_stdin=password_stdin,
        make_certificate=make_certificate,
        workload_token_file=workload_token_file,
        device=device,
        browser=browser,
        expires=expires,
    )
    reconnect_account(name, org, way, test=not no_test, as_json=as_json)


@account_app.command("list")
def list_(*, as_json: Json = False) -> None:
    """List accounts: how each signs in, and whether it can."""
    from drivefeed.cli.account_show import list_accounts

    list_accounts(as_json=as_json)


@account_app.command()
def show(name: Name, *, org: Org = None, as_json: Json = False) -> None:
    """Show one account; secrets stay sealed."""
    from drivefeed.cli.account_show import show_account

    show_account(name, org, as_json=as_json)


@account_app.command("test")
def try_(name: Name, *, org: Org = None, as_json: Json = False) -> None:
    """Sign in, and tell as whom and with which rights; exit code 1 if it is refused."""
    from drivefeed.cli.account_show import tell_sign_in

    tell_sign_in(name, org, as_json=as_json)


@account_app.command()
def remove(name: Name, *, org: Org = None, as_json: Json = False) -> None:
    """Forget an account and its secrets; one that reads a drive stays."""
    from drivefeed.cli.account_change import forget_account

    forget_account(name, org, as_json=as_json)


@account_app.command()
def certificate(
    name: Name,
    *,
    out: Annotated[
        Path | None,
        typer.Option("--output", "-o", "--out", help="Write the certificate to this file."),
    ] = None,
    org: Org = None,
    as_json: Json = False,
) -> None:
    """Print the public part of an account's certificate, for the app registration."""
    from drivefeed.cli.account_show import show_certificate

    show_certificate(name, org, out, as_json=as_json)
