"""Quirks of lists that people choose from (GRAPH B-1 21, B-2 48)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.sources.graph import browse

if TYPE_CHECKING:
    from drivefeed.sources.graph.looking import Look
    from quirks.stand import Stand


async def look_of(stand: Stand) -> Look:
    return await stand.source.look(next(iter(stand.accounts)))


async def test_21_an_item_that_the_end_of_a_page_swallowed_is_listed_and_none_twice(
    stand: Stand,
) -> None:
    folder = stand.drive.create_folder("many")
    names = [f"{number:02}" for number in range(12)]
    for name in names:
        stand.drive.create_folder(name, folder.id)
    stand.sim.faults.add("swap", op="children", count=1)
    look = await look_of(stand)
    found = [
        item.name
        async for page in browse.children(look, stand.drive.id, folder.id)
        for item in page
    ]
    assert sorted(map(str, found)) == names


async def test_48_containers_that_are_listed_as_sites_are_not_offered(stand: Stand) -> None:
    stand.sim.app.add_site("Loop", "/contentstorage/CSP_0f3a")
    site = stand.sim.app.add_site("Team")
    look = await look_of(stand)
    found = [one async for page in browse.sites(look) for one in page]
    urls = [one.web_url for one in found]
    assert any(url.endswith(site.path) for url in urls)
    assert not [url for url in urls if "contentstorage" in url]
