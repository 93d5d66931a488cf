from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivefeed.domain.reasons import Reason
from drivefeed.indexer.extract.pages import Draft, clean, split_evenly
from drivefeed.indexer.model import Limits, Rejected


@given(text=st.text(max_size=3_000), count=st.none() | st.integers(1, 20))
def test_splitting_loses_nothing_and_makes_no_more_pages_than_asked(
    text: str, count: int | None
) -> None:
    pages = split_evenly(text, count)
    assert "".join(pages) == text
    if count is not None:
        assert len(pages) <= count


@given(text=st.text(max_size=500))
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("a\r\nb\rc", "a\nb\nc"),
        ("a\x00b\x07c\ufeff", "abc"),
        ("hy\xadphen zero\u200bwidth", "hyphen zerowidth"),
        ("a \t\n\n\n\n b\xa0c ", "a\n\n b c"),
        ("lone \ud800 surrogate", "lone  surrogate"),
    ],
)
def test_cleaning(raw: str, text: str) -> None:
    assert clean(raw) == text


def test_pages_without_text_count_and_are_left_out() -> None:
    draft = Draft("text/plain", Limits())
    draft.add_all(["one", " \n", "three"])
    extraction = draft.finish()
    assert [(page.number, page.text) for page in extraction.pages] == [(1, "one"), (3, "three")]
    assert extraction.page_count == 3


def test_limits_of_pages_and_text() -> None:
    with pytest.raises(Rejected) as pages:
        Draft("x", Limits(pages=2)).add_all(["a", "b", "c"])
    assert pages.value.reason is Reason.TOO_LARGE
    with pytest.raises(Rejected) as text:
        Draft("x", Limits(text_bytes=5)).add_all(["äää"])  # six bytes
    assert text.value.reason is Reason.TOO_LARGE
    with pytest.raises(Rejected) as none:
        Draft("x", Limits()).finish()
    assert none.value.reason is Reason.NO_TEXT
