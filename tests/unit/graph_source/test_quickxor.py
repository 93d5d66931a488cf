import subprocess
import sysconfig
from base64 import b64decode, b64encode
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivefeed.sources.graph import QuickXor

RCLONE = Path(sysconfig.get_path("scripts")) / "rclone"


def hashed(*parts: bytes) -> str:
    hasher = QuickXor()
    for part in parts:
        hasher.update(part)
    return hasher.base64digest()


def by_definition(content: bytes) -> str:
    """Bit by bit, as Microsoft's page describes the algorithm."""
    ring = [0] * 160
    for index, byte in enumerate(content):
        for bit in range(8):
            ring[(index * 11 + bit) % 160] ^= byte >> bit & 1
    for bit in range(64):
        ring[96 + bit] ^= len(content) >> bit & 1
    return b64encode(
        sum(bit << place for place, bit in enumerate(ring)).to_bytes(20, "little")
    ).decode()


@pytest.mark.parametrize(
    "size", [0, 1, 2, 14, 15, 159, 160, 161, 319, 320, 40_959, 40_960, 40_961, 1_000_003]
)
def test_rclone_computes_the_same_value(tmp_path: Path, size: int) -> None:
    content = bytes((i * i + 7 * i + size) % 251 for i in range(size))
    file = tmp_path / "file"
    file.write_bytes(content)
    printed = subprocess.run(
        [RCLONE, "hashsum", "quickxor", str(file)],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert bytes.fromhex(printed.split()[0]) == b64decode(hashed(content))


@given(st.binary(max_size=700))
def test_it_is_the_algorithm_as_described(content: bytes) -> None:
    assert hashed(content) == by_definition(content)


@given(st.lists(st.binary(max_size=400), max_size=8))
def test_any_split_gives_the_same_value(parts: list[bytes]) -> None:
    assert hashed(*parts) == hashed(b"".join(parts))


@given(st.lists(st.integers(1, 100_000), max_size=6))
def test_splits_over_the_folding_limit_give_the_same_value(sizes: list[int]) -> None:
    parts = [bytes(range(256)) * (size // 256 + 1) for size in sizes]
    assert hashed(*parts) == hashed(b"".join(parts))


def test_the_digest_may_be_asked_for_in_between() -> None:
    hasher = QuickXor()
    hasher.update(b"first")
    assert hasher.base64digest() == hashed(b"first")
    hasher.update(b" and second")
    assert hasher.base64digest() == hashed(b"first and second")
