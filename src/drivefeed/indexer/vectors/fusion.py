"""Reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009): one ranking out of several.

We fuse ourselves, in place of the engines' own fusion, because ties are the rule in it (the
best dense hit and the best sparse hit score alike) and Qdrant leaves the order of ties open. Here
two engines with the same points give the same order, and a repeated search the same page.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

RANK_CONSTANT: Final = 60
"""The constant of the paper: how little the very first ranks count for more than the next."""

_LEAST_DEPTH: Final = 64
_DEPTH_PER_HIT: Final = 4


def depth(limit: int) -> int:
    """Return how many hits of each ranking to fuse when ``limit`` are wanted.

    It is never less than ``limit``; so fewer than ``limit`` fused hits mean there are no more.
    """
    return max(_LEAST_DEPTH, _DEPTH_PER_HIT * limit)


def fuse(rankings: Sequence[Sequence[tuple[str, float]]], limit: int) -> list[tuple[str, float]]:
    """Fuse rankings of (point id, score) into the best ``limit``, best first.

    Within a ranking, hits of equal score are ordered by id. Of equal sums, the one that ranks
    better in the last ranking comes first (we put the words last: who types a rare word means
    it), then the one in the ranking before, then the lower id.

    Returns:
        Point ids with the sum of ``1 / (60 + rank)`` over the rankings, ranks counted from 1.
    """
    ranks: dict[str, list[float]] = {}
    for number, ranking in enumerate(rankings):
        ordered = sorted(ranking, key=lambda hit: (-hit[1], hit[0]))
        for rank, (point_id, _) in enumerate(ordered, start=1):
            ranks.setdefault(point_id, [inf] * len(rankings))[number] = rank
    # Added up by rank, so that the same ranks give the same sum to the last bit.
    sums = {
        point_id: sum(1 / (RANK_CONSTANT + rank) for rank in sorted(of_it))
        for point_id, of_it in ranks.items()
    }
    best = sorted(sums, key=lambda point_id: (-sums[point_id], ranks[point_id][::-1], point_id))
    return [(point_id, sums[point_id]) for point_id in best[:limit]]
