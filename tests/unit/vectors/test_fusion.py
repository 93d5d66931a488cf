from random import Random

from hypothesis import given
from hypothesis import strategies as st

from drivefeed.indexer.vectors.fusion import depth, fuse

RANKING = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 3).map(float)), unique_by=lambda h: h[0]
)


def test_the_sum_is_that_of_the_paper() -> None:
    assert fuse([[("a", 0.9), ("b", 0.8)], [("b", 7.0)]], 5) == [
        ("b", 1 / 61 + 1 / 62),
        ("a", 1 / 61),
    ]


def test_of_equal_sums_the_last_ranking_decides_then_the_id() -> None:
    assert [i for i, _ in fuse([[("a", 1.0)], [("b", 1.0)]], 5)] == ["b", "a"]
    assert [i for i, _ in fuse([[("b", 1.0), ("a", 1.0)]], 5)] == ["a", "b"]
    # a is first then second, b second then first.
    assert [i for i, _ in fuse([[("a", 2.0), ("b", 1.0)], [("b", 2.0), ("a", 1.0)]], 5)] == [
        "b",
        "a",
    ]


def test_nothing_fuses_to_nothing() -> None:
    assert fuse([], 5) == []
    assert fuse([[], []], 5) == []


@given(st.lists(RANKING, max_size=3), st.randoms(use_true_random=False), st.integers(1, 9))
def test_the_order_in_which_equals_arrive_is_forgotten(
    rankings: list[list[tuple[str, float]]], random: Random, limit: int
) -> None:
    shuffled = [random.sample(ranking, len(ranking)) for ranking in rankings]
    assert fuse(shuffled, limit) == fuse(rankings, limit)
    assert fuse(rankings, limit) == fuse(rankings, 99)[:limit]


def test_depth_never_falls_short() -> None:
    assert all(depth(limit) >= limit for limit in range(1, 5_000))
