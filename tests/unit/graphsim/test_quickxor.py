from __future__ import annotations

import asyncio
import base64
import sysconfig
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from graphsim.bodies import BytesBody, SyntheticBody, hash_body
from graphsim.quickxor import BLOCK, QuickXor, quickxor

RCLONE = Path(sysconfig.get_path("scripts")) / "rclone"


def _slow(content: bytes) -> str:
    """The definition, bit by bit: an independent second way to the same value."""
    state = 0
    for index, byte in enumerate(content):
        shift = index * 11 % 160
        state ^= (byte << shift | byte << shift >> 160) & (1 << 160) - 1
    state ^= len(content) << 96
    return base64.b64encode((state & (1 << 160) - 1).to_bytes(20, "little")).decode()


@given(st.binary(max_size=2000))
def test_it_agrees_with_the_definition(content: bytes) -> None:
    assert quickxor(content) == _slow(content)


@settings(max_examples=20)
@given(st.lists(st.integers(0, 2 * BLOCK), max_size=4), st.integers(0, 255))
def test_the_size_of_chunks_does_not_matter(sizes: list[int], seed: int) -> None:
    whole = SyntheticBody(seed, sum(sizes)).read(0, sum(sizes))
    state, at = QuickXor(), 0
    for size in sizes:
        state.update(whole[at : at + size])
        at += size
    assert state.base64() == quickxor(whole)


async def test_rclone_computes_the_same(tmp_path: Path) -> None:
    expected: dict[str, str] = {}
    for size in (0, 1, 19, 159, 160, 161, 65_537, BLOCK - 1, BLOCK, 3 * BLOCK + 7):
        content = SyntheticBody(size, size).read(0, size)
        (tmp_path / f"{size}.bin").write_bytes(content)
        expected[f"{size}.bin"] = quickxor(content)
    process = await asyncio.create_subprocess_exec(
        RCLONE, "hashsum", "quickxor", "--base64", tmp_path, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    found = {}
    for line in output.decode().splitlines():
        value, name = line.split(maxsplit=1)
        found[name] = base64.b64encode(base64.urlsafe_b64decode(value)).decode()
    assert found == expected


def test_a_synthetic_body_is_the_same_however_it_is_read() -> None:
    size = 2 * BLOCK + 1000
    body = SyntheticBody(7, size)
    whole = body.read(0, size)
    assert len(whole) == size
    pieces = b"".join(body.read(at, 99_991) for at in range(0, size, 99_991))
    assert pieces == whole
    assert hash_body(body) == quickxor(whole) == hash_body(BytesBody(whole))
    assert whole[:BLOCK] != whole[BLOCK : 2 * BLOCK]
