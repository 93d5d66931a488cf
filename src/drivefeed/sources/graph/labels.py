"""Sensitivity labels of one file: no listing tells them, so each file is asked for by itself.

Source: "driveItem: extractSensitivityLabels" of Graph's reference. It reads and changes nothing of
the file; ``Files.Read.All`` or ``Sites.Read.All`` is enough. Personal accounts have no labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx
import msgspec

from drivefeed.domain.errors import NeedsAttention, Transient
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph.errors import Scene, broken
from drivefeed.sources.graph.http import read_body

if TYPE_CHECKING:
    from drivefeed.sources.graph.budget import Lane
    from drivefeed.sources.graph.client import GraphClient

_LARGEST = 1024 * 1024
_GONE = frozenset({404, 410})
_LOCKED = 423
_PROTECTED = frozenset({"filedoublekeyencrypted", "filedecryptionnotsupported"})
"""The file is encrypted so that SharePoint cannot look: only a label does that."""
_NOT_TOLD = frozenset({400, 403, 405, 501})


async def is_labelled(client: GraphClient, drive_id: str, item_id: str, lane: Lane) -> bool:
    """Ask for a file's labels; see :meth:`drivefeed.ports.Source.is_labelled`."""
    if client.account.is_personal:
        return False
    place = f"/drives/{quote(drive_id, safe='!')}/items/{quote(item_id, safe='!')}"
    url = f"{client.account.base_url}{place}/extractSensitivityLabels"
    async with client.answer(lambda: client.raw_request(url, method="POST"), lane=lane) as response:
        if response.status_code >= httpx.codes.BAD_REQUEST:
            refusal = await client.refusal(response)
            if refusal.status == _LOCKED and _PROTECTED & {*refusal.codes}:
                return True
            if refusal.status in _NOT_TOLD and not refusal.throttles:
                text = refusal.sentence(Scene.LABELS)
                raise NeedsAttention(text, reason=Reason.LABELS_UNKNOWN)
            # A 404 may be the whole drive's.
            scene = Scene.ITEM if refusal.status in _GONE else Scene.LABELS
            raise await client.judge(refusal, scene, drive_id, lane)
        await client.gate.passed()
        try:
            return _has_labels(await read_body(response, _LARGEST))
        except httpx.HTTPError as error:
            raise broken(error, Scene.LABELS) from error


def _has_labels(body: bytes) -> bool:
    try:
        found: Any = msgspec.json.decode(body)
    except msgspec.DecodeError:
        found = None
    if isinstance(found, dict) and isinstance(found.get("value"), dict):
        # The examples of the reference have it both ways.
        found = found["value"]
    labels = found.get("labels", []) if isinstance(found, dict) else None
    if not isinstance(labels, list):
        raise Transient("Microsoft Graph answered with no list of a file's sensitivity labels.")
    return bool(labels)
