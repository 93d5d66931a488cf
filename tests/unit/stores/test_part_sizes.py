from hypothesis import given
from hypothesis import strategies as st

from drivefeed.stores.s3_upload import PartSizes

MIB = 1 << 20
LARGEST_OBJECT = 5 << 40
MOST_PARTS = 10_000
LARGEST_PART = 5 << 30


def parts_for(sizes: PartSizes, total: int) -> tuple[int, int]:
    number, largest = 0, 0
    while total > 0:
        largest = max(largest, sizes(number))
        total -= sizes(number)
        number += 1
    return number, largest


def test_any_object_fits_without_a_hint() -> None:
    parts, largest = parts_for(PartSizes(8 * MIB, None), LARGEST_OBJECT)
    assert parts <= MOST_PARTS
    assert largest <= LARGEST_PART


@given(hint=st.integers(0, LARGEST_OBJECT))
def test_an_announced_object_needs_at_most_half_of_the_parts(hint: int) -> None:
    sizes = PartSizes(8 * MIB, hint)
    assert sizes(0) * 5000 >= hint
    assert sizes(0) == sizes(4999) <= max(8 * MIB, hint // 5000 + MIB)


def test_a_gigabyte_stays_at_the_configured_size() -> None:
    assert PartSizes(8 * MIB, 1 << 30)(0) == 8 * MIB


def test_even_a_wrong_hint_leaves_room() -> None:
    assert parts_for(PartSizes(8 * MIB, 1), LARGEST_OBJECT)[0] <= MOST_PARTS
