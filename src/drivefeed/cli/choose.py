"""The commands that choose a folder, as they are typed; see :mod:`.commands` for the others."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from drivefeed.cli.policy_flags import with_policy_flags

_Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs, and nothing else.")]
_Org = Annotated[
    str | None, typer.Option(help="Whose folder it is, where several organizations have accounts.")
]


def browse(
    account: Annotated[
        str | None, typer.Argument(help="Name or id of the account to look through.")
    ] = None,
    *,
    site: Annotated[
        str | None, typer.Option(help="Name, address or id of a site: lists its libraries.")
    ] = None,
    library: Annotated[
        str | None, typer.Option(help="Name or address of a library: lists what lies in it.")
    ] = None,
    path: Annotated[str, typer.Option(help="A folder below the library.")] = "",
    user: Annotated[
        str | None, typer.Option(help="Look into this person's OneDrive, by user principal name.")
    ] = None,
    search: Annotated[str, typer.Option(help="Only sites that match these words.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 1_000,
    org: _Org = None,
    me: Annotated[bool, typer.Option("--me", help="Look into your own OneDrive.")] = False,
    as_json: _Json = False,
) -> None:
    """Look for the folder to connect: sites, their libraries, their folders.

    On a terminal, without further options, choose by number; everywhere else, list one level.
    """
    from drivefeed.cli.browse import Place, run_browse

    if sum((site is not None, user is not None, me)) > 1:
        raise typer.BadParameter("Say one of --site, --user and --me.")
    place = Place(site=site, library=library, path=path, user=user, me=me, search=search)
    run_browse(account, org, place, limit, as_json=as_json)


@with_policy_flags
def connect(
    address: Annotated[
        str,
        typer.Argument(
            metavar="URL_OR_PATH",
            help="The folder's address from the browser, a sharing link, 'me:/Folder', "
            "'somebody@your-domain:/Folder' or '/sites/Name/Library/Folder'.",
        ),
    ],
    *,
    account: Annotated[
        str | None,
        typer.Option(help="Read it through this account; the first that may, without."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="What the connection is called; the folder's name, without.")
    ] = None,
    org: _Org = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only show what would happen (as without --apply).")
    ] = False,
    apply: Annotated[bool, typer.Option("--apply", help="Connect the folder.")] = False,
    written: dict[str, Any],
    as_json: _Json = False,
) -> None:
    """Connect a folder of OneDrive or SharePoint: show what was understood, then --apply.

    Without --apply nothing changes. Options that are not given stay as they are, if the folder is
    connected already.
    """
    if plan and apply:
        raise typer.BadParameter("Say either --plan or --apply.")
    from drivefeed.cli.connect import Wish, run_connect

    wish = Wish(address, account=account, org=org, name=name, written=written)
    run_connect(wish, apply=apply, as_json=as_json)
