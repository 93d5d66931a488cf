"""What belongs to one org is not there for another: every address is walked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fastapi.routing import APIRoute

from drivefeed.web.application import ROUTERS, routes_of
from unit.web.conftest import CANARY, ticking

if TYPE_CHECKING:
    from drivefeed.catalog.api_keys import FreshKey
    from unit.web.conftest import House

OPEN = {"/healthz", "/readyz", "/sign-in", "/sign-in/once", "/sign-in/done"}
"""For those who have not signed in yet; they tell nothing of any org."""
FOLLOWED = {"/events", "/v1/events"}
"""They go on; and they can be asked about one connection."""


def addresses(house: House) -> list[str]:
    """Every address that is asked with GET, its parameters filled in with what is the owner's."""
    own = routes_of(house.page.site)
    routes = [route for router in (*ROUTERS, own) for route in router.routes]
    paths = {
        one.path for one in routes if isinstance(one, APIRoute) and "GET" in (one.methods or ())
    }
    values = {"connection_id": house.connection_id, "item_id": "b"}
    found = [re.sub(r"{(\w+)}", lambda name: values[name[1]], path) for path in paths - OPEN]
    found += [f"{path}?connection={house.connection_id}" for path in FOLLOWED]
    found.append("/search?q=plan")
    found.append("/v1/search?q=plan")
    return found


async def test_a_strangers_stream_tells_nothing_of_the_owner(house: House) -> None:
    async with ticking(house.clock), house.client(house.strange_key) as client:
        for address in FOLLOWED:
            async with client.stream("GET", address) as response:
                pieces = response.aiter_text()
                said = await anext(pieces)
                while "summary" not in said and address == "/events":
                    said += await anext(pieces)
                assert house.connection_id not in said


async def answer(house: House, address: str, key: FreshKey | None) -> tuple[int, str]:
    async with house.client(key) as client, client.stream("GET", address) as response:
        if address.split("?", maxsplit=1)[0] in FOLLOWED and response.status_code == 200:
            assert response.headers["content-type"].startswith("text/event-stream")
            return 200, ""
        return response.status_code, (await response.aread()).decode()


async def test_another_orgs_key_finds_nothing_where_the_owner_finds_something(
    house: House,
) -> None:
    named = own = 0
    for address in addresses(house):
        status, said = await answer(house, address, house.key)
        assert status == 200, (address, said)
        status, said = await answer(house, address, house.strange_key)
        if house.connection_id in address:
            named += 1
            assert status == 404, address
        else:
            # Addresses that name nothing show everybody what is theirs.
            own += 1
            assert status == 200, (address, said)
            assert house.connection_id not in said, address
        for canary in (CANARY, "owner", "Good.txt"):
            assert canary not in said, address
    assert named >= 8
    assert own >= 7


async def test_each_is_told_in_which_collection_its_own_documents_are(house: House) -> None:
    told = [(await house.get("/v1/index", key)).json() for key in (house.key, house.strange_key)]
    facts = {"index": "embedded", "provider": "local", "dimension": 4, "distance": "cosine"}
    own = f"index-org-{house.rig.org_id}-1"
    assert told[0] == facts | {"collection": own, "model": "large"}
    assert told[1] == facts | {"collection": "index", "model": "small"}


async def test_without_a_key_nothing_is_told(house: House) -> None:
    for address in addresses(house):
        status, said = await answer(house, address, None)
        assert status == 401, address
        assert CANARY not in said


async def test_what_is_elsewhere_and_what_is_not_look_the_same(house: House) -> None:
    other = {"connection_id": house.connection_id, "item_id": "b"}
    nowhere = {"connection_id": "0" * 36, "item_id": "none"}
    for form in (
        "/v1/connections/{connection_id}",
        "/v1/connections/{connection_id}/files",
        "/v1/connections/{connection_id}/files/{item_id}",
        "/v1/events?connection={connection_id}",
    ):
        answers = []
        for values in (other, nowhere):
            response = await house.get(form.format(**values), house.strange_key)
            members = response.json()
            members.pop("instance")
            answers.append((response.status_code, members))
        assert answers[0] == answers[1]
