"""What the doctor finds at the address under which Microsoft is to call."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from drivefeed.cli.checkups import Doctor
from drivefeed.cli.checkups_parts import PartChecks
from drivefeed.domain.subscription import PATH
from drivefeed.outbound import Outbound
from drivefeed.services.checkups.finding import Colour, Finding
from drivefeed.services.checkups.notifications import is_shared, look_at_address, may_turn_back
from drivefeed.settings import Settings
from support.ear import Ear, listening
from support.proxy import running_proxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

TOKEN = "Validation: 100% of a+b"


@pytest.fixture
async def ear() -> AsyncIterator[Ear]:
    async with listening() as made:
        yield made


async def look(
    url: str, way: Outbound | None = None, *, is_running: bool = True, hides: bool = False
) -> Finding:
    async def turns_back(_host: str, _port: int) -> bool:
        return hides

    return await look_at_address(
        url,
        way or Outbound(),
        subscription_id="one",
        token=TOKEN,
        is_running=is_running,
        turns_back=turns_back,
    )


async def test_a_token_that_comes_back_is_green(ear: Ear) -> None:
    found = await look(f"{ear.url}/")
    assert found.colour is Colour.GREEN
    assert ear.handshakes == [f"{PATH}one"]


async def test_another_answer_than_the_token_is_red(ear: Ear) -> None:
    ear.echoes = False
    found = await look(ear.url)
    assert found.colour is Colour.RED
    assert "it answers 200, and not as drivefeed's endpoint" in found.words
    assert "pass /notifications/ to the status page" in found.remedy


async def test_a_port_at_which_nobody_listens_is_red(ear: Ear) -> None:
    async with listening() as gone:
        pass
    found = await look(gone.url)
    assert found.colour is Colour.RED
    assert f"{urlsplit(gone.url).netloc}, where Microsoft is to tell of changes" in found.words
    assert "cannot be connected to" in found.words
    assert "Start what is to listen there" in found.remedy


async def test_a_name_that_nobody_knows_and_an_answer_without_encryption_are_red(ear: Ear) -> None:
    unknown = await look("https://nobody.invalid")
    assert (unknown.colour, "cannot be resolved" in unknown.words) == (Colour.RED, True)
    assert "public DNS" in unknown.remedy
    plain = await look(ear.url.replace("http:", "https:"))
    assert (plain.colour, "no encrypted connection" in plain.words) == (Colour.RED, True)
    assert "public authority" in plain.remedy


async def test_behind_a_router_that_may_not_lead_back_it_is_yellow(ear: Ear) -> None:
    ear.echoes = False
    async with listening() as gone:
        pass
    for url in (ear.url, gone.url):
        found = await look(url, hides=True)
        assert (found.colour, "from this machine alone" in found.words) == (Colour.YELLOW, True)
        assert f"Try 'curl -i -X POST {url}{PATH}one' from outside." in found.remedy


async def test_it_is_called_through_the_proxy_as_everything_else_is(ear: Ear) -> None:
    async with running_proxy() as proxy:
        way = Outbound(https_proxy=proxy.url)
        found = await look("https://nobody.invalid", way, hides=True)
        assert proxy.hosts == {"nobody.invalid"}
    assert found.colour is Colour.RED, "who asks a proxy does not meet its own router"
    assert "Correct the proxy" in found.remedy


async def test_only_one_private_and_one_public_address_make_it_doubtful() -> None:
    assert is_shared("192.168.1.7", "8.8.8.8")
    assert not is_shared("8.8.4.4", "8.8.8.8")
    assert not is_shared("10.0.0.1", "10.0.0.2")
    assert not await may_turn_back("127.0.0.1", 443)
    assert not await may_turn_back("nobody.invalid", 443)


async def test_the_doctor_looks_where_an_address_is_set_and_there_alone(tmp_path: Path) -> None:
    async with listening() as gone, AsyncExitStack() as stack:
        set_up = {"url": gone.url}
        for notifications in (set_up, {}):
            settings = Settings(data_dir=tmp_path, notifications=notifications)
            doctor = Doctor(settings, None, None, stack, None)
            parts = PartChecks(doctor)
            parts.add_all()
            assert ("notifications" in doctor.examination._checks) is bool(notifications)
            if notifications:
                (found,) = await parts.notifications()
                assert found.colour is Colour.YELLOW, "no daemon runs"
                assert found.part == "notifications"
                assert "drivefeed up" in found.remedy
    assert [one.startswith(PATH) for one in gone.handshakes] == [True]
