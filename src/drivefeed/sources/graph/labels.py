"""Sensitivity labels of one file: no listing tells them, so each file is asked for by itself.

Source: "driveItem: extractSensitivityLabels" of Graph's reference. It reads and changes nothing of
the file; ``Files.Read.All`` or ``Sites.Read.All`` is enough. Personal accounts have no labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from drivefeed.domain.errors import Transient
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph.errors import Scene
from drivefeed.sources.graph.one_file import Question, ask_of_file, place_of

if TYPE_CHECKING:
    from drivefeed.sources.graph.budget import Lane
    from drivefeed.sources.graph.client import GraphClient
    from drivefeed.sources.graph.errors import Refusal

_LOCKED = 423
_PROTECTED = frozenset({"filedoublekeyencrypted", "filedecryptionnotsupported"})


def _is_protected(refusal: Refusal) -> bool:
    """Tell whether a file is encrypted so that SharePoint cannot look: only a label does that."""
    return refusal.status == _LOCKED and bool(_PROTECTED & {*refusal.codes})


_QUESTION = Question(
    Scene.LABELS,
    unknown=Reason.LABELS_UNKNOWN,
    largest=1024 * 1024,
    method="POST",
    is_answer=_is_protected,
)


async def is_labelled(client: GraphClient, drive_id: str, item_id: str, lane: Lane) -> bool:
    """Ask for a file's labels; see :meth:`drivefeed.ports.Source.is_labelled`."""
    if client.account.is_personal:
        return False
    place = place_of(drive_id, item_id)
    url = f"{client.account.base_url}{place}/extractSensitivityLabels"
    body = await ask_of_file(client, url, _QUESTION, drive_id=drive_id, lane=lane)
    return True if body is None else _has_labels(body)


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
