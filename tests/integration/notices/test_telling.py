"""From a trouble in the catalog to somebody who is told, whatever happens on the way."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import update

from drivefeed.catalog.connecting import ensure_account, ensure_org
from drivefeed.catalog.engine import open_catalog
from drivefeed.catalog.notices import list_notices
from drivefeed.catalog.tables import accounts
from drivefeed.domain.errors import Part
from drivefeed.outward import notices_of
from drivefeed.settings import Settings, load_settings
from support.catalogs import new_catalog
from support.clock import CountedIds, ManualClock, no_checkpoint
from support.commands import run_command
from support.dripping import dripping
from support.mail import running_mail_server
from support.processes import environment
from support.receiver import running_receiver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.catalog.engine import Catalog
    from drivefeed.services.notices import Notices
    from support.receiver import Receiver

KILLED = Path(__file__).with_name("killed_sender.py")
HOUR = 3_600_000
MAIL = 'kind = "smtp"\nhost = "h"\nfrom = "a@b"\nto = ["c@d"]'


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def catalog(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Catalog]:
    url = new_catalog(tmp_path / "catalog.sqlite")
    whole = await open_catalog(url, clock=clock, ids=CountedIds(), checkpoint=no_checkpoint)
    yield whole
    await whole.aclose()


async def change_account(catalog: Catalog, **values: Any) -> None:
    account_id = await ensure_account(catalog, await ensure_org(catalog, "acme"), "main")
    async with catalog.write() as connection:
        await connection.execute(
            update(accounts).where(accounts.c.id == account_id).values(**values)
        )


def hook(url: str, name: str = "hook", **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": "webhook", "url": url, **more}


def mail(port: int) -> dict[str, Any]:
    addresses = {"from": "feed@acme.example", "to": ["ops@acme.example"]}
    return {"name": "mail", "kind": "smtp", "host": "127.0.0.1", "port": port, "tls": "none"} | (
        addresses
    )


def telling(catalog: Catalog, *channels: dict[str, Any], **more: Any) -> Notices:
    return notices_of(Settings(notices=list(channels)), catalog, owner="us", **more)


def told(server: Receiver) -> list[tuple[str, str]]:
    """What the webhook was told, in order: what happened, and to what."""
    return [
        (one["happening"], one["kind"])
        for posted in server.received
        for one in json.loads(posted.body)["notices"]
    ]


async def test_a_lost_sign_in_is_told_once_and_that_it_is_over(
    catalog: Catalog, clock: ManualClock
) -> None:
    await change_account(catalog, state="needs_sign_in", reason="needs_sign_in")
    with running_receiver() as server:
        notices = telling(catalog, hook(server.url))
        for _ in range(3):
            await notices.look()
            await notices.deliver()
            clock.turn(seconds=60)
        assert told(server) == [("opened", "account")]
        await change_account(catalog, state="ok", reason=None)
        await notices.look()
        await notices.deliver()
    assert told(server) == [("opened", "account"), ("over", "account")]
    assert len({one.headers["Idempotency-Key"] for one in server.received}) == 2


async def test_a_secret_that_ends_is_told_at_each_step(
    catalog: Catalog, clock: ManualClock
) -> None:
    await change_account(catalog, expires_at=clock.now() + 31 * 24 * HOUR)
    with running_receiver() as server:
        notices = telling(catalog, hook(server.url, digest_minutes=0))
        days_told = []
        for day in range(33):
            before = len(server.received)
            await notices.look()
            await notices.deliver()
            days_told += [31 - day] * (len(server.received) - before)
            clock.turn(days=1)
        assert days_told == [30, 14, 3, 0]
        await change_account(catalog, expires_at=clock.now() + 365 * 24 * HOUR)
        await notices.look()
        await notices.deliver()
    assert told(server)[-1] == ("over", "expiry")
    assert len(server.received) == 5


async def test_a_channel_that_fails_is_tried_for_a_day_and_others_hear_at_once(
    catalog: Catalog, clock: ManualClock
) -> None:
    await change_account(catalog, state="blocked", reason="access_denied")
    with running_receiver() as server, running_receiver() as broken:
        broken.answer = (500, {}, b"broken")
        notices = telling(catalog, hook(server.url), hook(broken.url, "broken"))
        await notices.look()
        hours = 0
        while hours < 30:
            await notices.deliver()
            clock.turn(seconds=1800)
            hours += 0.5
        assert told(server) == [("opened", "account")]
        assert 20 < len(broken.received) < 60
        assert len({one.headers["Idempotency-Key"] for one in broken.received}) == 1
    (one,) = await list_notices(catalog)
    gave_up = next(each for each in one["deliveries"] if each["channel"] == "broken")
    assert 23 * HOUR < gave_up["gave_up_at"] - gave_up["made_at"] <= 24 * HOUR
    assert "500 broken" in gave_up["detail"]


async def test_waits_that_a_server_asks_for_are_kept(catalog: Catalog, clock: ManualClock) -> None:
    await change_account(catalog, state="blocked", reason="access_denied")
    with running_receiver() as server:
        server.answers = [(429, {"Retry-After": "600"}, b"")]
        notices = telling(catalog, hook(server.url))
        await notices.look()
        await notices.deliver()
        clock.turn(seconds=599)
        await notices.deliver()
        assert len(server.received) == 1
        clock.turn(seconds=1)
        await notices.deliver()
    assert len(server.received) == 2


async def test_one_of_several_processes_looks_and_sends(catalog: Catalog) -> None:
    await change_account(catalog, state="blocked", reason="access_denied")
    with running_receiver() as server:
        channel = Settings(notices=[hook(server.url)])
        several = [notices_of(channel, catalog, owner=f"process {number}") for number in range(3)]
        await asyncio.gather(*(one.tick() for one in several))
        await asyncio.gather(*(one.deliver() for one in several))
    assert len(server.received) == 1


async def test_a_part_that_is_down_is_told_after_its_minutes(
    catalog: Catalog, clock: ManualClock
) -> None:
    down = {Part.STORE: "The store does not answer."}
    with running_receiver() as server:
        notices = telling(catalog, hook(server.url), open_parts=lambda: down)
        await notices.look()
        clock.turn(seconds=14 * 60)
        await notices.look()
        await notices.deliver()
        assert told(server) == []
        clock.turn(seconds=60)
        await notices.look()
        await notices.deliver()
        assert told(server) == [("opened", "part_down")]
        # A process that has just started does not know yet whether it is over.
        again = telling(catalog, hook(server.url), open_parts=dict)
        await again.look()
        await again.deliver()
        assert told(server) == [("opened", "part_down")]
        down.clear()
        await notices.look()
        await notices.deliver()
    assert told(server) == [("opened", "part_down"), ("over", "part_down")]


@pytest.mark.parametrize("kind", ["webhook", "smtp"])
async def test_a_kill_between_sending_and_saying_so_sends_the_same_message_again(
    tmp_path: Path, kind: str
) -> None:
    """A second copy cannot be ruled out, so it carries the same id: receivers can tell."""
    url = new_catalog(tmp_path / "catalog.sqlite")
    clock = ManualClock()
    catalog = await open_catalog(url, clock=clock, ids=CountedIds(7), checkpoint=no_checkpoint)
    await change_account(catalog, state="needs_sign_in", reason="needs_sign_in")
    async with running_mail_server() as mails:
        with running_receiver() as server:
            told_by = server.url if kind == "webhook" else ""
            child = await asyncio.create_subprocess_exec(
                *(sys.executable, str(KILLED), url, told_by, str(mails.port)), env=environment()
            )
            assert await child.wait() == -signal.SIGKILL
            keys = [one.headers["Idempotency-Key"] for one in server.received]
            keys += [one["Message-ID"] for one in mails.mails]
            assert len(keys) == 1
            channel = hook(server.url) if kind == "webhook" else mail(mails.port)
            # The killed process had the clock of the machine.
            clock.turn(days=365 * 100)
            await telling(catalog, channel).deliver()
            again = [one.headers["Idempotency-Key"] for one in server.received]
            again += [one["Message-ID"] for one in mails.mails]
            assert again == keys * 2
            await telling(catalog, channel).deliver()
            assert len(server.received) + len(mails.mails) == 2
    await catalog.aclose()


async def test_commands_show_notices_and_try_channels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def command(*words: str, ok: tuple[int, ...] = (0,)) -> Any:
        return run_command("--data", str(tmp_path), *words, cwd=tmp_path, ok=ok)

    url = new_catalog(tmp_path / "catalog.sqlite")
    catalog = await open_catalog(
        url, clock=ManualClock(), ids=CountedIds(), checkpoint=no_checkpoint
    )
    await change_account(catalog, state="needs_sign_in", reason="needs_sign_in")
    with running_receiver() as server:
        (tmp_path / "drivefeed.toml").write_text(
            f'[[notices]]\nname = "desk"\nkind = "slack"\nurl = "{server.url}/secret-word"\n'
        )
        notices = telling(catalog, hook(server.url, "desk"))
        await notices.look()
        await notices.deliver()
        shown = (await asyncio.to_thread(command, "notices")).stdout
        assert "1 open notice" in shown
        assert "urgent account 'main' (acme)" in shown
        assert "drivefeed account test main" in shown
        assert "desk: told" in shown
        assert "200 ok" in shown
        listed = json.loads((await asyncio.to_thread(command, "notices", "--json")).stdout)
        assert listed["open"][0]["deliveries"][0]["channel"] == "desk"
        assert listed["past"] == []
        tried = await asyncio.to_thread(command, "notices", "test", "desk")
        assert "The message was taken. The server answered: 200 ok" in tried.stdout
        server.answer = (403, {}, b"no_active_hooks")
        refused = await asyncio.to_thread(command, "notices", "test", "desk", ok=(1,))
        assert "403 no_active_hooks" in refused.stdout
        assert "secret-word" not in refused.stdout + refused.stderr
        with dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"x") as drip:
            (tmp_path / "drivefeed.toml").write_text(
                '[[notices]]\nname = "desk"\nkind = "slack"\n'
                f'url = "http://127.0.0.1:{drip.port}/hook"\n'
            )
            with monkeypatch.context() as patched:
                patched.setattr("drivefeed.services.notices.SEND_SECONDS", 0.5)
                late = await asyncio.to_thread(command, "notices", "test", "desk", ok=(1,))
            assert "did not take it within" in late.stdout
        unknown = await asyncio.to_thread(command, "notices", "test", "other", ok=(2,))
        assert "There are: desk" in unknown.stderr
    await catalog.aclose()


@pytest.mark.parametrize(
    ("channel", "said"),
    [
        ('kind = "smtp"', "needs host, from, to"),
        ('kind = "teams"', "needs url"),
        (f'{MAIL}\nuser = "u"', "no password"),
        (
            f'{MAIL}\nuser = "u"\npassword = "word"\ntls = "none"',
            "without TLS",
        ),
        (f'{MAIL}\n[[notices]]\nname = "Desk"\n{MAIL}', "several channels named Desk, desk"),
        ('kind = "pager"\nurl = "x"', "notices.0.kind"),
    ],
)
def test_channels_that_cannot_work_are_refused_with_the_settings(
    tmp_path: Path, channel: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "drivefeed.toml"
    path.write_text(f'[[notices]]\nname = "desk"\n{channel}\n')
    monkeypatch.setenv("DRIVEFEED_CONFIG", str(path))
    with pytest.raises(Exception, match="The settings cannot be used") as refused:
        load_settings()
    assert said in str(refused.value)
    assert "word" not in str(refused.value).replace("password", "")
