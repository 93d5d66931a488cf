"""Answers to somebody who looks for a place that graphsim would never give."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.domain.errors import NeedsAttention, Throttled, Transient
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph import ClientSecret, GraphAccount, GraphSource, browse
from drivefeed.sources.graph.addresses import parse_address
from drivefeed.sources.graph.browse import Library
from drivefeed.sources.graph.looking import Look, Refused
from drivefeed.sources.graph.resolve import item_below, resolve
from integration.graph_source.kit import HurriedClock, PlainIds
from integration.graph_source.scripted import (
    Answer,
    Asked,
    FixedCredential,
    Server,
    json_answer,
    refusal,
    scripted,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LAB = "https://contoso.sharepoint.com/sites/Lab"
ROOT_SITE = {"id": "r", "siteCollection": {"hostname": "contoso.sharepoint.com"}}


@asynccontextmanager
async def looking(**account: Any) -> AsyncIterator[tuple[Server, Look]]:
    async with scripted() as server:
        one = GraphAccount(
            "a", "a", "tenant", "app", ClientSecret("s"), graph_url=server.url, **account
        )
        source = GraphSource(
            {"a": one},
            clock=HurriedClock(),
            ids=PlainIds(),
            credential=lambda _: FixedCredential(),
            allowance=1_000_000,
        )
        try:
            yield server, await source.look("a")
        finally:
            await source.aclose()


def answering(server: Server, **answers: Any) -> None:
    """Answer by a part of the address that was asked for, the longest first."""
    order = sorted(answers, key=len, reverse=True)

    def script(asked: Asked) -> Answer:
        for part in order:
            if part in asked.target:
                given = answers[part]
                return given if isinstance(given, tuple) else json_answer(given)
        return refusal(404, "itemNotFound")

    server.script = script


async def said(look: Look, text: str) -> str:
    with pytest.raises(NeedsAttention) as caught:
        await resolve(look, parse_address(text))
    return str(caught.value)


async def test_a_next_link_to_elsewhere_is_not_followed() -> None:
    async with looking() as (server, look), scripted() as evil:
        page = {"value": [{"id": "1"}], "@odata.nextLink": f"{evil.url}/v1.0/sites?token=x"}
        server.script = lambda _: json_answer(page)
        with pytest.raises(NeedsAttention) as caught:
            [page async for page in browse.sites(look)]
        assert caught.value.reason is Reason.SOURCE_MISBEHAVES
        assert evil.asked == []


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"<html>", b'{"value": 1}', b'{"value"', b"\xff", b"[" * 5000]
)
async def test_an_answer_that_cannot_be_read_is_tried_again_later(body: bytes) -> None:
    async with looking() as (server, look):
        server.script = lambda _: (200, {}, body)
        with pytest.raises(Transient):
            [page async for page in browse.sites(look)]


async def test_odd_entries_do_not_lose_the_page_they_are_on() -> None:
    async with looking() as (server, look):
        sites = [None, 1, {}, {"id": 5}, {"id": "s", "webUrl": f"{LAB}/", "displayName": None}]
        server.script = lambda _: json_answer({"value": sites})
        pages = [page async for page in browse.sites(look)]
        assert [(one.site_id, one.name) for page in pages for one in page] == [("s", "Lab")]


async def test_what_has_nothing_to_do_with_the_place_keeps_its_meaning() -> None:
    async with looking() as (server, look):
        server.script = lambda _: refusal(429, "tooManyRequests", Retry_After="7")
        with pytest.raises(Throttled):
            await look.ask("/sites/root", "it")
    async with looking() as (server, look):
        server.script = lambda _: refusal(401, "InvalidAuthenticationToken")
        with pytest.raises(NeedsAttention) as caught:
            await look.ask("/sites/root", "it")
        assert caught.value.reason is Reason.NEEDS_SIGN_IN
        server.script = lambda _: refusal(500, "generalException")
        with pytest.raises(Transient):
            await look.ask("/sites/root", "it")
        server.script = lambda _: refusal(403, "accessDenied")
        with pytest.raises(Refused) as refused:
            await look.ask("/sites/root", "the root")
        assert "403 (accessdenied: No) when asked for the root" in str(refused.value)


async def test_a_host_that_the_tenant_does_not_know() -> None:
    async with looking() as (server, look):
        wrong = refusal(400, "invalidRequest")
        answering(server, **{"/sites/root": ROOT_SITE, "/sites/fabrikam": wrong})
        words = await said(look, "https://fabrikam.sharepoint.com/sites/Lab/Docs")
        assert "belongs to another organization" in words
        words = await said(look, LAB)
        assert words.startswith(f"There is no site at '{LAB}'")


async def test_without_a_right_to_the_root_site_the_refusal_itself_is_told() -> None:
    async with looking() as (server, look):
        server.script = lambda _: refusal(403, "accessDenied")
        words = await said(look, f"{LAB}/Docs")
        assert f"may not read '{LAB}/Docs'" in words


def with_library(**more: Any) -> dict[str, Any]:
    library = {"id": "b!d", "name": "Docs", "driveType": "documentLibrary", "webUrl": f"{LAB}/Docs"}
    return {
        "/sites/contoso.sharepoint.com:/sites/Lab": {"id": "s", "displayName": "Lab"},
        "/sites/s/drives": {"value": [library]},
        "/root?": {"id": "root", "root": {}, "folder": {}, "name": "root"},
        **more,
    }


async def test_a_shortcut_names_the_folder_it_leads_to() -> None:
    shortcut = {
        "id": "1",
        "name": "Shared with us",
        "remoteItem": {"id": "2", "webUrl": "https://contoso.sharepoint.com/sites/Ops/Docs/X"},
        "parentReference": {"id": "root", "driveId": "b!d"},
    }
    above = {"id": "root", "root": {}}
    async with looking() as (server, look):
        answering(server, **with_library(**{"us:?": shortcut, "/items/root?": above}))
        for path in ("Shared with us", "Shared with us/Deep"):
            words = await said(look, f"{LAB}/Docs/{path}")
            assert "is a shortcut to a folder in another library" in words
            assert words.endswith("https://contoso.sharepoint.com/sites/Ops/Docs/X")


async def test_a_path_with_a_percent_sign_is_followed_name_by_name() -> None:
    async with looking() as (server, look):
        first = {"value": [{"id": "x", "name": "other", "folder": {}}]}
        first["@odata.nextLink"] = f"{server.url}/v1.0/second"  # type: ignore[assignment]
        second = {"value": [{"id": "y", "name": "100%41", "folder": {}}]}
        answering(
            server,
            **{
                "root/children": first,
                "/second": second,
                "/items/y?": {"id": "y", "name": "100%41", "folder": {}},
            },
        )
        library = Library("b!d", "Docs", "documentLibrary", f"{LAB}/Docs")
        _, item = await item_below(look, library, ("100%41",))
        assert item.item_id == "y"
        assert not [one for one in server.asked if ":/" in one.target]


async def test_china_is_never_asked_by_path() -> None:
    async with looking(cloud="china") as (server, look):
        answering(
            server,
            **{
                "root/children": {"value": [{"id": "y", "name": "A", "folder": {}}]},
                "/items/y?": {"id": "y", "name": "A", "folder": {}},
            },
        )
        library = Library("b!d", "Docs", "documentLibrary", f"{LAB}/Docs")
        _, item = await item_below(look, library, ("a",))
        assert item.item_id == "y"
        assert not [one for one in server.asked if ":/" in one.target]


async def test_folders_that_go_round_in_circles_are_told() -> None:
    async with looking() as (server, look):
        first = {"id": "1", "name": "A", "folder": {}, "parentReference": {"id": "2"}}
        second = {"id": "2", "name": "B", "folder": {}, "parentReference": {"id": "1"}}
        answering(
            server, **with_library(**{"/root:/A": first, "/items/2": second, "/items/1": first})
        )
        assert "lies in no drive" in await said(look, f"{LAB}/Docs/A")
