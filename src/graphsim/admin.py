"""The admin port: faults, the request log and the drives, as JSON over http without a password.

It binds the loopback address only; it is for tests and demos.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from graphsim.admin_answers import Refused, answered, safe
from graphsim.admin_directory import DirectoryAdmin
from graphsim.admin_watch import WatchAdmin
from graphsim.bodies import Body, SyntheticBody
from graphsim.bulk import BulkDrive
from graphsim.clock import ManualClock
from graphsim.drives import MemoryDrive
from graphsim.fault_scripts import as_fault, changed_quirks, parse_script, run_script
from graphsim.items import Profile

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from graphsim.app import Application
    from graphsim.drive import Drive
    from graphsim.items import Item


class Change(msgspec.Struct):
    """One change of a drive in memory; which fields are needed depends on ``do``."""

    do: str
    """``folder``, ``file``, ``notebook``, ``vault``, ``other``, ``replace``, ``rename``, ``move``,
    ``touch``, ``annotate``, ``delete``, ``restore`` (as the quirk says) or ``restore_new``."""
    item: str = ""
    parent: str | None = None
    name: str = ""
    text: str = ""
    """The content of a file, unless ``size`` is given."""
    size: int | None = None
    """Bytes of synthetic content."""
    seed: int = 0
    facets: dict[str, Any] = {}
    id: str | None = None
    """The id of a new file, in place of one in the drive's own form."""
    content: bool = False
    """For ``touch``: change the cTag too."""
    late: float = 0.0
    """Seconds after which delta shows the change."""


class Bulk(msgspec.Struct, forbid_unknown_fields=True):
    """A drive of generated files."""

    files: int
    folders: int
    name: str = "bulk"
    profile: Profile = Profile.BUSINESS


def admin_app(app: Application) -> Starlette:
    """Return the admin application over a running graphsim."""
    admin = _Admin(app)
    routes = [
        ("/faults", ["GET"], admin.list_faults),
        ("/faults", ["POST"], admin.add_faults),
        ("/faults", ["DELETE"], admin.clear_faults),
        ("/drives", ["GET"], admin.list_drives),
        ("/bulk", ["POST"], admin.add_bulk),
        ("/drives/{drive}/changes", ["POST"], admin.change),
        ("/drives/{drive}/bulk-changes", ["POST"], admin.change_many),
        ("/drives/{drive}/quirks", ["PATCH"], admin.set_quirks),
        ("/drives/{drive}/migrate", ["POST"], admin.migrate),
        ("/drives/{drive}/labels", ["PATCH"], admin.set_labels),
        ("/drives/{drive}/permissions", ["PATCH"], admin.set_permissions),
        ("/drives/{drive}/expire-tokens", ["POST"], admin.expire_tokens),
        ("/clock/advance", ["POST"], admin.advance),
        *DirectoryAdmin(app).routes(),
    ]
    own = [Route(path, safe(end), methods=how) for path, how, end in routes]
    return Starlette(routes=[*own, *WatchAdmin(app).routes()])


class _Admin:
    def __init__(self, app: Application) -> None:
        self._app = app

    async def list_faults(self, _: Request) -> Response:
        return answered(self._app.faults.waiting())

    async def add_faults(self, request: Request) -> Response:
        """Take one fault, a list of them, or a script in TOML."""
        if "toml" in request.headers.get("content-type", ""):
            script = parse_script((await request.body()).decode())
            return answered(run_script(script, self._app), 201)
        given = msgspec.json.decode(
            await request.body(), type=list[dict[str, Any]] | dict[str, Any]
        )
        faults = [as_fault(one) for one in (given if isinstance(given, list) else [given])]
        return answered([self._app.faults.insert(fault) for fault in faults], 201)

    async def clear_faults(self, request: Request) -> Response:
        number = request.query_params.get("id")
        self._app.faults.clear(int(number) if number else None)
        return Response(status_code=204)

    async def list_drives(self, _: Request) -> Response:
        return answered(
            [
                {
                    "id": drive.id, "name": drive.name, "driveType": drive.profile,
                    "root": drive.tree.root_id, "items": len(drive.tree.snapshot()),
                    "seq": drive.tree.seq, "quirks": drive.quirks, "leftOut": drive.left_out,
                }
                for drive in self._app.drives
            ]
        )  # fmt: skip

    async def change(self, request: Request) -> Response:
        """Take a list of :class:`Change`; answer with the items as they are now."""
        drive = self._drive(request)
        if not isinstance(drive, MemoryDrive):
            raise Refused(f"{drive.name} is a real folder; change the folder itself.")
        changes = msgspec.json.decode(await request.body(), type=list[Change])
        return answered([_applied(drive, change) for change in changes])

    async def add_bulk(self, request: Request) -> Response:
        """Take :class:`Bulk`; answer with the new drive."""
        wanted = msgspec.json.decode(await request.body(), type=Bulk)
        drive = self._app.add_bulk(wanted.name, wanted.files, wanted.folders, wanted.profile)
        return answered({"id": drive.id, "root": drive.tree.root_id}, 201)

    async def change_many(self, request: Request) -> Response:
        """Take ``count`` and ``seed``; answer with how many changes of each kind were made."""
        drive, asked = self._drive(request), request.query_params
        if not isinstance(drive, BulkDrive):
            raise Refused(f"{drive.name} is no bulk drive.")
        made = drive.change(int(asked["count"]), int(asked.get("seed", "0")))
        return answered(dict(made))

    async def set_quirks(self, request: Request) -> Response:
        drive = self._drive(request)
        drive.quirks = changed_quirks(drive.quirks, msgspec.json.decode(await request.body()))
        return answered(drive.quirks)

    async def migrate(self, request: Request) -> Response:
        """Give the root another id."""
        drive = self._drive(request)
        if not isinstance(drive, MemoryDrive):
            raise Refused(f"{drive.name} is a real folder, whose root keeps its id.")
        return answered({"root": drive.migrate()})

    async def set_labels(self, request: Request) -> Response:
        """Take ids of sensitivity labels by item id; they stand in place of an item's own."""
        drive = self._drive(request)
        drive.labels |= msgspec.json.decode(await request.body(), type=dict[str, list[str]])
        return answered(drive.labels)

    async def set_permissions(self, request: Request) -> Response:
        """Take permissions by item id; delta tells of those items. ``[]`` inherits again."""
        drive = self._drive(request)
        told = msgspec.json.decode(await request.body(), type=dict[str, list[dict[str, Any]]])
        for item, permissions in told.items():
            drive.set_permissions(item, permissions)
        return answered(drive.permissions)

    async def expire_tokens(self, request: Request) -> Response:
        self._drive(request).expire_tokens()
        return Response(status_code=204)

    async def advance(self, request: Request) -> Response:
        clock = self._app.clock.inner
        if not isinstance(clock, ManualClock):
            raise Refused("This graphsim runs on the real clock, which can't be advanced.")
        clock.advance(float(request.query_params["seconds"]))
        return answered({"now": clock.now()})

    def _drive(self, request: Request) -> Drive:
        for drive in self._app.drives:
            if request.path_params["drive"] in {drive.id, drive.name}:
                return drive
        raise Refused("There is no such drive.")


_CHANGES: dict[str, Callable[[MemoryDrive, Change, bytes | Body], Item]] = {
    "folder": lambda drive, it, _: drive.create_folder(it.name, it.parent),
    "file": lambda drive, it, body: drive.create_file(
        it.name, body, it.parent, identifier=it.id, **it.facets
    ),
    "notebook": lambda drive, it, _: drive.create_notebook(it.name, it.parent),
    "vault": lambda drive, it, _: drive.create_vault(it.parent),
    "other": lambda drive, it, _: drive.create_other(it.name, it.parent, **it.facets),
    "replace": lambda drive, it, body: drive.replace(it.item, body),
    "rename": lambda drive, it, _: drive.rename(it.item, it.name),
    "move": lambda drive, it, _: drive.move(it.item, it.parent, it.name or None),
    "touch": lambda drive, it, _: drive.touch(it.item, content=it.content),
    "annotate": lambda drive, it, _: drive.annotate(it.item, **it.facets),
    "delete": lambda drive, it, _: drive.delete(it.item),
    "restore": lambda drive, it, _: drive.restore(it.item),
    "restore_new": lambda drive, it, _: drive.restore(it.item, new_ids=True),
}


def _applied(drive: MemoryDrive, change: Change) -> Item:
    if change.do not in _CHANGES:
        raise Refused(f"There is no change called {change.do}; choose from {sorted(_CHANGES)}.")
    synthetic = change.size is not None
    body = SyntheticBody(change.seed, change.size or 0) if synthetic else change.text.encode()
    item = _CHANGES[change.do](drive, change, body)
    if change.late:
        drive.hide(item.id, change.late)
    return item
