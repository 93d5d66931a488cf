from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivefeed.indexer.vectors.fusion import depth, fuse

RANKING = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 3).map(float)), unique_by=lambda h: h[0]
)


def order(dense: list[tuple[str, float]], sparse: list[tuple[str, float]]) -> str:
    return "".join(point_id for point_id, _ in fuse(dense, sparse, 9))


def test_the_sum_is_as_documented() -> None:
    fused = dict(fuse([("a", 0.9), ("b", 0.8)], [("b", 8.0), ("a", 2.0), ("c", 1.0)], 5))
    assert fused == pytest.approx(
        {
            "a": 1 / 3 + 1.5 * 0.25**2 / 4,
            "b": 1 / 4 + 1.5 / 3,
            "c": 1.5 * 0.125**2 / 5,
        }
    )


def test_a_whole_sentence_beats_a_near_meaning_with_common_words() -> None:
    near = [(f"n{number:02}", 1.0 - number / 100) for number in range(60)]
    assert order(near, [("sentence", 20.0), ("n00", 12.0)]).startswith("sentence")


def test_without_words_the_meaning_decides() -> None:
    assert order([("a", 0.9), ("b", 0.1)], []) == "ab"
    assert order([("b", 0.9), ("a", 0.9)], []) == "ab"


def test_hits_of_equal_score_are_ordered_by_id() -> None:
    assert order([], [("b", 2.0), ("a", 2.0), ("c", 2.0)]) == "abc"


def test_of_equal_sums_the_better_match_of_words_comes_first() -> None:
    # 1/4 for rank 2 by meaning; 1.5 / 6 for rank 4 by words, all of equal score.
    sparse = [("s1", 2.0), ("s2", 2.0), ("s3", 2.0), ("s4", 2.0)]
    fused = fuse([("d1", 0.9), ("d2", 0.8)], sparse, 9)
    assert dict(fused)["s4"] == dict(fused)["d2"]
    assert [point_id for point_id, _ in fused].index("s4") + 1 == [p for p, _ in fused].index("d2")


def test_nothing_fuses_to_nothing() -> None:
    assert fuse([], [], 5) == []
    assert fuse([], [("a", 0.0)], 5) == [("a", 0.5)]


@given(RANKING, RANKING, st.randoms(use_true_random=False), st.integers(1, 9))
def test_the_order_in_which_equals_arrive_is_forgotten(
    dense: list[tuple[str, float]], sparse: list[tuple[str, float]], random: Random, limit: int
) -> None:
    shuffled = [random.sample(ranking, len(ranking)) for ranking in (dense, sparse)]
    fused = fuse(dense, sparse, limit)
    assert fuse(shuffled[0], shuffled[1], limit) == fused
    assert fuse(dense, sparse, 99)[:limit] == fused
    assert len(fused) == min(limit, len({point_id for point_id, _ in dense + sparse}))


def test_depth_never_falls_short() -> None:
    assert all(depth(limit) >= limit for limit in range(1, 5_000))
