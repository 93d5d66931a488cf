"""Reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009): one ranking out of several.

We fuse ourselves, in place of the engines' own fusion, because ties are the rule in it (the
best dense hit and the best sparse hit score alike) and Qdrant leaves the order of ties open. Here
two engines with the same points give the same order, and a repeated search the same page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

RANK_CONSTANT: Final = 60
"""The constant of the paper: how little the very first ranks count for more than the next."""

_LEAST_DEPTH: Final = 64
_DEPTH_PER_HIT: Final = 4


def depth(limit: int) -> int:
    """Return how many hits of each ranking to fuse when ``limit`` are wanted.

    It is never less than ``limit``; so fewer than ``limit`` fused hits mean there are no more.
    """
    return max(_LEAST_DEPTH, _DEPTH_PER_HIT * limit)


def fuse(rankings: Iterable[Sequence[tuple[str, float]]], limit: int) -> list[tuple[str, float]]:
    """Fuse rankings of (point id, score) into the best ``limit``, best first.

    Within a ranking, hits of equal score are ordered by id, and so are equal sums.

    Returns:
        Point ids with the sum of ``1 / (60 + rank)`` over the rankings, ranks counted from 1.
    """
    sums: dict[str, float] = {}
    for ranking in rankings:
        ordered = sorted(ranking, key=lambda hit: (-hit[1], hit[0]))
        for rank, (point_id, _) in enumerate(ordered, start=1):
            sums[point_id] = sums.get(point_id, 0.0) + 1 / (RANK_CONSTANT + rank)
    return sorted(sums.items(), key=lambda hit: (-hit[1], hit[0]))[:limit]
