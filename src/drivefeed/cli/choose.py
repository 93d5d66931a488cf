"""The commands that choose a folder, as they are typed; see :mod:`.commands` for the others."""

from __future__ import annotations

from typing import Annotated, Any

import typer

_Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs, and nothing else.")]
_Org = Annotated[
    str | None, typer.Option(help="Whose folder it is, where several organizations have accounts.")
]
_POLICY = "What the connection wants"


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
    subfolders: Annotated[
        bool | None,
        typer.Option(
            "--subfolders/--no-subfolders",
            help="Whether folders below it count.",
            rich_help_panel=_POLICY,
        ),
    ] = None,
    include: Annotated[
        list[str] | None,
        typer.Option(help="Only files that match such a glob.", rich_help_panel=_POLICY),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(help="No files that match such a glob.", rich_help_panel=_POLICY),
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(help="Only such endings: pdf, docx …", rich_help_panel=_POLICY),
    ] = None,
    max_size: Annotated[
        str | None, typer.Option(help="Skip larger files: 50 MB.", rich_help_panel=_POLICY)
    ] = None,
    modified_since: Annotated[
        str | None,
        typer.Option(help="Skip older files: 2024-01-31, 365 d.", rich_help_panel=_POLICY),
    ] = None,
    on_delete: Annotated[
        str | None,
        typer.Option(help="mirror what the source removes, or keep it.", rich_help_panel=_POLICY),
    ] = None,
    grace: Annotated[
        str | None,
        typer.Option(help="How long removed content is only hidden: 7 d.", rich_help_panel=_POLICY),
    ] = None,
    brake_count: Annotated[
        str | None,
        typer.Option(help="More removals at once stop and ask.", rich_help_panel=_POLICY),
    ] = None,
    brake_percent: Annotated[
        str | None,
        typer.Option(help="A larger share at once stops and asks.", rich_help_panel=_POLICY),
    ] = None,
    brake_floor: Annotated[
        str | None,
        typer.Option(help="The fewest removals a share can stop.", rich_help_panel=_POLICY),
    ] = None,
    priority: Annotated[
        str | None, typer.Option(help="high or normal.", rich_help_panel=_POLICY)
    ] = None,
    interval: Annotated[
        str | None,
        typer.Option(help="How often to ask for changes: 5 min.", rich_help_panel=_POLICY),
    ] = None,
    quiet_hours: Annotated[
        str | None,
        typer.Option(help="No transfers in this window: 08:00-18:00.", rich_help_panel=_POLICY),
    ] = None,
    time_zone: Annotated[
        str | None,
        typer.Option(help="The zone of the quiet hours.", rich_help_panel=_POLICY),
    ] = None,
    backend: Annotated[
        str | None, typer.Option(help="Which backend makes it searchable.", rich_help_panel=_POLICY)
    ] = None,
    deadline: Annotated[
        str | None,
        typer.Option(help="When a file is late at the backend: 6 h.", rich_help_panel=_POLICY),
    ] = None,
    as_json: _Json = False,
) -> None:
    """Connect a folder of OneDrive or SharePoint: show what was understood, then --apply.

    Without --apply nothing changes. Options that are not given stay as they are, if the folder is
    connected already.
    """
    if plan and apply:
        raise typer.BadParameter("Say either --plan or --apply.")
    from drivefeed.cli.connect import Wish, run_connect

    options: dict[str, Any] = {
        "subfolders": subfolders,
        "include": include,
        "exclude": exclude,
        "types": types,
        "max_size": max_size,
        "modified_since": modified_since,
        "on_delete": on_delete,
        "grace": grace,
        "brake_count": brake_count,
        "brake_percent": brake_percent,
        "brake_floor": brake_floor,
        "priority": priority,
        "interval": interval,
        "quiet_hours": quiet_hours,
        "time_zone": time_zone,
        "backend": backend,
        "deadline": deadline,
    }
    # A list that was not given arrives empty.
    written = {key: value for key, value in options.items() if value is not None and value != []}
    wish = Wish(address, account=account, org=org, name=name, written=written)
    run_connect(wish, apply=apply, as_json=as_json)
