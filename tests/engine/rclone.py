"""What rclone makes of a drive: an independent reader, which lists folders and never asks delta."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import sysconfig
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphsim.drives import MemoryDrive
    from graphsim.serving import GraphSim

_RCLONE = Path(sysconfig.get_path("scripts")) / "rclone"


async def copy_of(sim: GraphSim, drive: MemoryDrive) -> dict[str, str]:
    """Have ``rclone copy`` fetch a whole drive; return the SHA-256 of each file by its path."""
    folder = Path(tempfile.mkdtemp(prefix="engine-rclone-"))
    try:
        await _copy(sim, drive, folder)
        place = folder / "copy"
        return {
            str(path.relative_to(place)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in place.rglob("*")
            if path.is_file()
        }
    finally:
        shutil.rmtree(folder)


async def _copy(sim: GraphSim, drive: MemoryDrive, folder: Path) -> None:
    ends = sim.endpoints
    token = {
        "access_token": sim.access_token(),
        "token_type": "Bearer",
        # Good for an hour of the simulator's time; by that, refresh tokens are too old.
        "expiry": "2100-01-01T00:00:00Z",
    }
    config = folder / "rclone.conf"
    lines = {
        "type": "onedrive",
        "tenant_url": f"{ends.login_http_url}/_api",
        "token_url": f"{ends.login_http_url}/common/oauth2/v2.0/token",
        "auth_url": f"{ends.login_http_url}/common/oauth2/v2.0/authorize",
        "client_id": ends.client_id,
        "client_secret": ends.client_secret,
        "token": json.dumps(token),
        "drive_id": drive.id,
        "drive_type": drive.profile.value,
    }
    config.write_text("[sim]\n" + "".join(f"{key} = {value}\n" for key, value in lines.items()))
    copying = await asyncio.create_subprocess_exec(
        *(str(_RCLONE), "--config", str(config), "copy", "sim:", str(folder / "copy")),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await copying.communicate()
    assert copying.returncode == 0, said.decode()
    (folder / "copy").mkdir(exist_ok=True)
