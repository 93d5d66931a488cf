"""A question about one file, which no listing answers: sent, and its refusals told apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

import httpx

from drivefeed.domain.errors import NeedsAttention
from drivefeed.sources.graph.budget import COST_ONE
from drivefeed.sources.graph.errors import Scene, broken
from drivefeed.sources.graph.http import read_body

if TYPE_CHECKING:
    from collections.abc import Callable

    from drivefeed.domain.reasons import Reason
    from drivefeed.sources.graph.budget import Lane
    from drivefeed.sources.graph.client import GraphClient
    from drivefeed.sources.graph.errors import Refusal

_GONE = frozenset({404, 410})
_NOT_TOLD = frozenset({400, 403, 405, 501})


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a file.

    Attributes:
        scene: what is read, for sentences.
        unknown: the reason where the account is not told.
        largest: the most bytes of an answer.
        method: of the request.
        cost: resource units.
        is_answer: whether a refusal says all there is to know.
    """

    scene: Scene
    unknown: Reason
    largest: int
    method: str = "GET"
    cost: int = COST_ONE
    is_answer: Callable[[Refusal], bool] = lambda _: False


def place_of(drive_id: str, item_id: str) -> str:
    """Return a file's path below the version of Graph, encoded."""
    return f"/drives/{quote(drive_id, safe='!')}/items/{quote(item_id, safe='!')}"


async def ask_of_file(
    client: GraphClient, link: str, question: Question, *, drive_id: str, lane: Lane
) -> bytes | None:
    """Return the body of the answer; None where the refusal was the answer.

    Raises:
        NeedsAttention: the account is not told, for the question's reason.
        DrivefeedError: everything else that can go wrong; see ``GraphClient.judge``.
    """
    async with client.answer(
        lambda: client.raw_request(link, method=question.method), lane=lane, cost=question.cost
    ) as response:
        if response.status_code >= httpx.codes.BAD_REQUEST:
            refusal = await client.refusal(response)
            if question.is_answer(refusal):
                return None
            if refusal.status in _NOT_TOLD and not refusal.throttles:
                raise NeedsAttention(refusal.sentence(question.scene), reason=question.unknown)
            # A 404 may be the whole drive's.
            scene = Scene.ITEM if refusal.status in _GONE else question.scene
            raise await client.judge(refusal, scene, drive_id, lane)
        await client.gate.passed()
        try:
            return await read_body(response, question.largest)
        except httpx.HTTPError as error:
            raise broken(error, question.scene) from error
