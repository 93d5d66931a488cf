"""What a client must know to connect."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from graphsim.directory import DirectoryDrive
from graphsim.identity import DIRECTORY_FIELDS
from graphsim.rendering import render_drive, site_id

if TYPE_CHECKING:
    from pathlib import Path

    from graphsim.app import Application
    from graphsim.drive import Drive


class DriveFacts(msgspec.Struct):
    """One drive as a client needs to know it."""

    name: str
    drive_id: str
    root_id: str
    drive_type: str
    site_id: str
    folder: str | None
    web_url: str
    """Its address in a browser, as people paste it."""


class Endpoints(msgspec.Struct):
    """Everything a client needs to connect; the ready file holds it as JSON."""

    graph_url: str
    """Graph over plain http, with the version prefix."""
    graph_https_url: str
    login_url: str
    """Entra over https; the authority for azure-identity and MSAL."""
    login_http_url: str
    admin_url: str
    ca_file: str
    tenant_id: str
    client_id: str
    client_secret: str
    refresh_token: str
    """A fresh refresh token of the person, for clients that start from one."""
    user_id: str
    user_name: str
    drive_id: str
    root_id: str
    site_id: str
    drives: list[DriveFacts]
    pid: int


def describe(app: Application, http: int, https: int, board: int, *, ca: Path) -> Endpoints:
    """Return how to reach a running graphsim, given its three ports."""
    directory, drives = app.entra.directory, [_facts(drive) for drive in app.drives]
    return Endpoints(
        graph_url=f"http://127.0.0.1:{http}/v1.0",
        graph_https_url=f"https://127.0.0.1:{https}/v1.0",
        login_url=f"https://127.0.0.1:{https}",
        login_http_url=f"http://127.0.0.1:{http}",
        admin_url=f"http://127.0.0.1:{board}",
        ca_file=str(ca),
        refresh_token=app.entra.grants.refresh_token(),
        drive_id=drives[0].drive_id,
        root_id=drives[0].root_id,
        site_id=drives[0].site_id,
        drives=drives,
        pid=os.getpid(),
        **{name: getattr(directory, name) for name in DIRECTORY_FIELDS},
    )


def _facts(drive: Drive) -> DriveFacts:
    folder = str(drive.folder) if isinstance(drive, DirectoryDrive) else None
    kind, web = drive.profile.value, render_drive(drive)["webUrl"]
    return DriveFacts(drive.name, drive.id, drive.tree.root_id, kind, site_id(drive), folder, web)
