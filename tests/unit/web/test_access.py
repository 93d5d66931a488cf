"""Signing in and out, wrong keys, headers, and names that are not ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

from drivefeed.catalog.api_keys import create_key
from drivefeed.catalog.key_revoking import revoke_key
from drivefeed.catalog.sessions import create_link
from drivefeed.web.door import word_of_page
from drivefeed.web.limits import WrongKeys
from support.waiting import until
from unit.web.conftest import furnished, serving

if TYPE_CHECKING:
    from pathlib import Path

    from drivefeed.catalog.engine import Catalog
    from unit.web.conftest import House


async def test_a_link_signs_in_once_and_leaves_its_address(house: House) -> None:
    link = await create_link(house.rig.catalog, org_id=house.rig.org_id, name="anna")
    address = f"/sign-in/once?link={link.text}"

    async with house.client(None) as client:
        answer = await client.get(address)
        assert answer.status_code == 303
        assert link.text not in answer.headers["location"]
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert "Secure" not in cookie
        assert link.text not in cookie
        onward = await client.get(answer.headers["location"])
        assert 'content="0; url=/"' in onward.text
        assert (await client.get("/")).status_code == 200
        assert (await client.get("/v1/")).status_code == 200
    async with house.client(None) as client:
        again = await client.get(address)
        assert again.status_code == 410
        assert "drivefeed key link" in again.text
        assert (await client.get("/")).status_code == 401


async def test_behind_https_the_cookie_is_for_https_alone(catalog: Catalog) -> None:
    rig = await furnished(catalog)
    link = await create_link(catalog, org_id=rig.org_id, name="anna")
    async with serving(catalog, url="https://feed.example/") as page:
        port = page._socket.getsockname()[1]
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            answer = await client.get(
                f"/sign-in/once?link={link.text}", headers={"Host": "feed.example"}
            )
    assert answer.headers["set-cookie"].startswith("__Host-drivefeed=ds_")
    assert "; Secure" in answer.headers["set-cookie"]


async def test_a_key_signs_a_browser_in_and_out(house: House) -> None:
    async with house.client(None) as client:
        asked = await client.get("/connections/x?q=1")
        assert asked.status_code == 401
        assert 'name="next" value="/connections/x?q=1"' in asked.text
        form = {"key": house.key.text, "next": "/search?q=plan"}
        answer = await client.post("/sign-in", data=form)
        assert answer.status_code == 303
        assert answer.headers["location"] == "/search?q=plan"
        assert house.key.text not in answer.headers["set-cookie"]
        assert (await client.get("/")).status_code == 200
        session = dict(client.cookies)
        assert (await client.post("/sign-out")).status_code == 303
        assert not client.cookies
    async with house.client(None, cookies=session) as client:
        assert (await client.get("/")).status_code == 401


async def test_revoking_a_key_ends_its_browsers(house: House) -> None:
    async with house.client(None) as client:
        await client.post("/sign-in", data={"key": house.key.text})
        assert (await client.get("/")).status_code == 200
        await revoke_key(house.rig.catalog, house.key.key.prefix)
        assert (await client.get("/")).status_code == 401


async def test_signing_in_leads_to_no_other_site(house: House) -> None:
    elsewhere = ("//evil.example", "https://evil.example", "/\\evil.example", "evil", "/a\r\nx")
    async with house.client(None) as client:
        for address in (*elsewhere, "/sign-out"):
            form = {"key": house.key.text, "next": address}
            answer = await client.post("/sign-in", data=form)
            assert answer.headers["location"] == "/", address


async def test_another_site_cannot_sign_anybody_in(house: House) -> None:
    async with house.client(None, headers={"Sec-Fetch-Site": "cross-site"}) as client:
        answer = await client.post("/sign-in", data={"key": house.key.text})
        assert answer.status_code == 401
        assert "set-cookie" not in answer.headers


async def test_a_form_that_is_none_is_refused(house: House) -> None:
    async with house.client(None) as client:
        for body in (b"\xff", b"key=" + b"x" * 5000, b"&".join([b"a=1"] * 20)):
            assert (await client.post("/sign-in", content=body)).status_code == 400


async def test_wrong_keys_wait_and_right_ones_do_not(house: House) -> None:
    fresh = await create_key(house.rig.catalog, org_id=house.rig.org_id, name="fresh")
    assert (await house.get("/v1/")).status_code == 200
    async with house.client(None) as client:
        said = []
        for _ in range(12):
            answer = await client.get("/v1/", headers={"Authorization": "Bearer df_no_no"})
            said.append(answer.status_code)
        assert said == [401] * 10 + [429] * 2
        assert 0 < int(answer.headers["retry-after"]) <= 60
        assert answer.json()["reason"] == "too_many_wrong_keys"
        assert (await client.get("/v1/", headers={"Authorization": "Basic x"})).status_code == 401
    assert (await house.get("/v1/")).status_code == 200
    # Behind a reverse proxy one address is everybody's.
    assert (await house.get("/v1/", fresh)).status_code == 200
    link = await create_link(house.rig.catalog, org_id=house.rig.org_id, name="anna")
    async with house.client(None) as client:
        assert (await client.get("/sign-in/once?link=dl_no")).status_code == 429
        assert (await client.get(f"/sign-in/once?link={link.text}")).status_code == 303
        assert (await client.get("/sign-in/once?link=dl_no")).status_code == 429


def test_the_count_of_wrong_keys_ends_and_is_bounded() -> None:
    now = 0.0
    limit = WrongKeys(lambda: now)
    for _ in range(10):
        limit.was_wrong("a")
    assert limit.seconds_to_wait("a") == 60
    assert limit.seconds_to_wait("b") == 0
    now = 59.5
    assert limit.seconds_to_wait("a") == 1
    now = 60.0
    assert limit.seconds_to_wait("a") == 0
    for number in range(5_000):
        limit.was_wrong(str(number))
    assert len(limit._wrong) == 1_000


async def test_every_answer_keeps_browsers_careful(house: House) -> None:
    async with house.client(house.key) as client:
        for address in ("/", "/v1/", "/none", "/v1/none", "/static/live.js", "/static/none"):
            headers = (await client.get(address)).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert headers["x-content-type-options"] == "nosniff"
            assert "access-control-allow-origin" not in headers
            kept = "no-cache" if address.startswith("/static") else "no-store"
            assert headers["cache-control"] == kept
        for address in ("/", f"/connections/{house.connection_id}", "/search", "/sign-in"):
            page = (await client.get(address)).text
            assert " style=" not in page
            assert "<style" not in page
            assert page.count("<script") == page.count("<script src=") == 1


async def test_only_our_names_are_answered(house: House) -> None:
    ours = ("127.0.0.1:1", "localhost:8765", "[::1]:8765", "LOCALHOST.")
    others = ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "")
    for host in (*ours, *others):
        async with house.client(house.key, headers={"Host": host}) as client:
            answer = await client.get("/v1/")
        assert answer.status_code == (200 if host in ours else 421), host
        if host in others:
            assert answer.json()["reason"] == "unknown_host"


async def test_a_page_says_where_it_is_while_it_runs(catalog: Catalog, tmp_path: Path) -> None:
    async with serving(catalog, folder=tmp_path, url="https://feed.example") as page:
        bound = await until(lambda: word_of_page(tmp_path), what="word of the page")
        assert bound.startswith("http://127.0.0.1:")
        assert page.url == "https://feed.example"
    assert word_of_page(tmp_path) is None
