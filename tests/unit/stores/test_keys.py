import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivefeed.stores.keys import MAX_KEY_BYTES, require_key, require_prefix


@given(st.text(max_size=40))
def test_an_accepted_key_stays_below_the_root(text: str) -> None:
    try:
        key = require_key(text)
    except ValueError:
        return
    segments = key.split("/")
    assert not {"", ".", ".."} & set(segments)
    assert not set("\0\\\n") & set(key)


def test_the_longest_key() -> None:
    key = "/".join(["x" * 255] * 3 + ["x" * 200, "x" * 55])
    assert len(key) == MAX_KEY_BYTES
    assert require_key(key) == key
    with pytest.raises(ValueError, match="too long"):
        require_key(key + "x")


def test_lengths_are_counted_in_bytes() -> None:
    assert require_key("ü" * 127)
    with pytest.raises(ValueError, match="255"):
        require_key("ü" * 128)


@pytest.mark.parametrize("prefix", ["", "a", "a/", "a/b", "a/b/"])
def test_prefixes(prefix: str) -> None:
    assert require_prefix(prefix) == prefix


@pytest.mark.parametrize("prefix", ["/", "../", "a//", "a/../b", "\\"])
def test_prefixes_that_no_key_has(prefix: str) -> None:
    with pytest.raises(ValueError, match="object key"):
        require_prefix(prefix)
