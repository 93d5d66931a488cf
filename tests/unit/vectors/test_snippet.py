import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivefeed.indexer.search import Snippet, snippet

LONG = " ".join(f"filler{number}" for number in range(100))


def marked(shown: Snippet) -> list[str]:
    return [shown.text[start:end] for start, end in shown.highlights]


def test_a_short_text_is_shown_whole_on_one_line() -> None:
    assert snippet("two\n\n  lines\there", "lines") == Snippet("two lines here", ((4, 9),))


def test_nothing_to_show() -> None:
    assert snippet("", "word") == Snippet("")
    assert snippet("  \n ", "") == Snippet("")


def test_without_a_match_the_beginning_is_shown() -> None:
    shown = snippet(LONG, "zebra", 50)
    assert shown.text == "filler0 filler1 filler2 filler3 filler4 filler5…"
    assert shown.highlights == ()


def test_the_cut_is_around_the_matches_on_borders_of_words() -> None:
    shown = snippet(f"{LONG} the striped zebra grazes {LONG}", "zebra", 60)
    assert marked(shown) == ["zebra"]
    assert "the striped zebra grazes" in shown.text
    assert shown.text[0] == shown.text[-1] == "…"
    assert all(w in f"{LONG} the striped zebra grazes" for w in shown.text.strip("…").split())


def test_the_place_with_most_different_words_wins() -> None:
    text = f"zebra zebra zebra {LONG} one zebra and a giraffe {LONG}"
    shown = snippet(text, "zebra giraffe", 60)
    assert marked(shown) == ["zebra", "giraffe"]


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("Die GRÖSSE zählt", "größe", ["GRÖSSE"]),
        ("un cafe\u0301 noir", "CAFÉ", ["cafe\u0301"]),
        ("contracts and contractor", "contract", ["contracts", "contractor"]),
        ("art, article", "art", ["art"]),
        ("to be or not", "to be", ["to", "be"]),
        ("to be the owner", "the owner to be", ["the", "owner"]),
        ("🦓 zebra 🦓", "zebra", ["zebra"]),
        ("a.b@c.example", "example", ["example"]),
    ],
)
def test_what_counts_as_a_match(text: str, query: str, expected: list[str]) -> None:
    assert marked(snippet(text, query)) == expected


def test_a_word_wider_than_the_snippet_is_cut_inside() -> None:
    assert snippet("x" * 500, "y", 100).text == "x" * 100 + "…"
    assert len(snippet("word " + "x" * 500, "x" * 500, 100).text) <= 102


@given(st.text(max_size=400), st.text(max_size=40), st.integers(1, 120))
def test_it_never_overruns_and_highlights_lie_in_it(text: str, query: str, width: int) -> None:
    shown = snippet(text, query, width)
    assert len(shown.text) <= width + 2
    body = shown.text.removeprefix("…").removesuffix("…")
    assert body in " ".join(text.split())
    before = 0
    for start, end in shown.highlights:
        assert before <= start < end <= len(shown.text)
        before = end
