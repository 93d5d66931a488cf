"""One ranking out of two: reciprocal rank fusion, in which the words count by how well they match.

Plain reciprocal rank fusion forgets by how much a hit is ahead. A chunk that alone holds a whole
sentence of the query, rare words and all, then loses to one that is near in meaning and shares
some common words. So a hit of the sparse ranking is weighted by the square of its score relative
to the best one. Measured over 469 chunks with MiniLM: a planted sentence came first in 1.00 of the
searches (with plain fusion and the usual constant 60 in 0.68), eight words copied from a chunk in
0.86 (0.62), and the chunk under a heading for the heading's words in 0.47 (0.45; by meaning alone
0.39, by words alone 0.46).

We fuse ourselves also because the engines leave the order of ties open. Here two engines with the
same points give the same order, and a repeated search the same page.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

RANK_CONSTANT: Final = 2
"""What is added to a rank, counted from 1; small, so that the first ranks count."""

SPARSE_WEIGHT: Final = 1.5
"""What the best sparse hit counts for, against the best dense one."""

_LEAST_DEPTH: Final = 64
_DEPTH_PER_HIT: Final = 4
_DIGITS: Final = 3
"""Digits of a relative score; the next ones differ between engines."""

Ranking = list[tuple[str, float]]
"""Point ids with scores, in any order."""


def depth(limit: int) -> int:
    """Return how many hits of each ranking to fuse when ``limit`` are wanted.

    It is never less than ``limit``; so fewer than ``limit`` fused hits mean there are no more.
    """
    return max(_LEAST_DEPTH, _DEPTH_PER_HIT * limit)


def fuse(
    dense: Sequence[tuple[str, float]], sparse: Sequence[tuple[str, float]], limit: int
) -> Ranking:
    """Fuse a dense and a sparse ranking of (point id, score) into the best ``limit``, best first.

    Within a ranking, hits of equal score are ordered by id. Of equal sums the one with the better
    sparse rank comes first (who types a rare word means it), then the one with the better dense
    rank.

    Returns:
        Point ids with ``1 / (2 + dense rank) + 1.5 * relative² / (2 + sparse rank)``.
    """
    by_meaning, by_words = _ordered(dense), _ordered(sparse)
    best_score = by_words[0][1] if by_words else 0.0
    dense_ranks = {point_id: rank for rank, (point_id, _) in enumerate(by_meaning, start=1)}
    sparse_ranks = {point_id: rank for rank, (point_id, _) in enumerate(by_words, start=1)}
    sums = {point_id: 1 / (RANK_CONSTANT + rank) for point_id, rank in dense_ranks.items()}
    for point_id, score in by_words:
        relative = round(score / best_score, _DIGITS) if best_score > 0 else 1.0
        part = SPARSE_WEIGHT * relative**2 / (RANK_CONSTANT + sparse_ranks[point_id])
        sums[point_id] = sums.get(point_id, 0.0) + part
    best = sorted(
        sums,
        key=lambda point_id: (
            -sums[point_id],
            sparse_ranks.get(point_id, inf),
            dense_ranks.get(point_id, inf),
        ),
    )
    return [(point_id, sums[point_id]) for point_id in best[:limit]]


def _ordered(ranking: Sequence[tuple[str, float]]) -> Ranking:
    return sorted(ranking, key=lambda hit: (-hit[1], hit[0]))
