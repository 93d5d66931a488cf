"""What a misconfigured Redis is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from drivefeed.domain.errors import Part, PartDown
from drivefeed.ports import Stage
from drivefeed.queue import BullmqQueue
from support.valkey import PASSWORD, ValkeyServer, free_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class NoIds:
    def new(self) -> str:
        raise AssertionError

    def fraction(self) -> float:
        raise AssertionError


@pytest.fixture
async def queue(own_valkey: ValkeyServer) -> AsyncIterator[BullmqQueue]:
    made = BullmqQueue(own_valkey.url, prefix="h", name="t", ids=NoIds())
    yield made
    await made.aclose()


async def test_a_good_server_needs_no_word(queue: BullmqQueue) -> None:
    await queue.check()
    assert await queue.warnings() == []


async def test_an_evicting_server_is_refused(queue: BullmqQueue, own_valkey: ValkeyServer) -> None:
    with own_valkey.client() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
    with pytest.raises(PartDown, match=r"allkeys-lru.*noeviction") as caught:
        await queue.check()
    assert caught.value.part is Part.QUEUE
    assert await queue.warnings() == []


async def test_an_evicting_server_that_forbids_config_is_only_warned_about(
    own_valkey: ValkeyServer,
) -> None:
    with own_valkey.client() as client:
        client.config_set("maxmemory-policy", "volatile-lru")
        client.execute_command(
            "ACL", "SETUSER", "managed", "on", ">pw", "~*", "&*", "+@all", "-config"
        )
    url = own_valkey.url.replace(f":{PASSWORD}@", "managed:pw@")
    queue = BullmqQueue(url, prefix="h", name="t", ids=NoIds())
    await queue.check()
    (warning,) = await queue.warnings()
    assert "volatile-lru" in warning
    await queue.aclose()


async def test_no_append_only_file_is_warned_about(
    queue: BullmqQueue, own_valkey: ValkeyServer
) -> None:
    with own_valkey.client() as client:
        client.config_set("appendonly", "no")
    await queue.check()
    (warning,) = await queue.warnings()
    assert "appendonly" in warning


async def test_a_full_server_is_a_sentence(queue: BullmqQueue, own_valkey: ValkeyServer) -> None:
    with own_valkey.client() as client:
        client.config_set("maxmemory", "1")
    with pytest.raises(PartDown, match="maxmemory"):
        await queue.set_generation("g")


async def test_a_wrong_password_and_a_closed_port_are_told_apart(own_valkey: ValkeyServer) -> None:
    wrong = BullmqQueue(
        own_valkey.url.replace(PASSWORD, "guess"), prefix="h", name="t", ids=NoIds()
    )
    with pytest.raises(PartDown, match="password"):
        await wrong.check()
    await wrong.aclose()
    closed = BullmqQueue(f"redis://127.0.0.1:{free_port()}", prefix="h", name="t", ids=NoIds())
    with pytest.raises(PartDown, match="cannot be reached"):
        await closed.counts(Stage.POLL)
    await closed.aclose()


def test_a_url_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="URL"):
        BullmqQueue("http://host", prefix="h", name="t", ids=NoIds())
    with pytest.raises(ValueError, match="prefix"):
        BullmqQueue("redis://host", prefix="", name="t", ids=NoIds())
