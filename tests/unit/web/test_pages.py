"""Pages and JSON say what the catalog knows; what names contain stays text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.catalog.ledger import correct
from drivefeed.catalog.quota_limits import Limit, set_limit
from drivefeed.catalog.tables import connections
from drivefeed.domain.periods import Period
from drivefeed.domain.reasons import Reason
from unit.web.conftest import CANARY

if TYPE_CHECKING:
    from unit.web.conftest import House


async def test_the_overview_counts_and_begins_with_what_needs_a_person(house: House) -> None:
    answer = (await house.get("/v1/")).json()

    (one,) = answer["connections"]
    assert answer["org"] == "owner"
    assert answer["pages_used"] == 7
    assert one["found"] == 4
    assert (one["searchable"], one["failed"], one["skipped"], one["in_progress"]) == (1, 1, 1, 1)
    assert one["percent"] == 75
    first = answer["troubles"][0]
    assert (first["reason"], first["needs_person"], first["files"]) == ("corrupt", True, 1)
    assert first["remedy"]
    page = (await house.get("/")).text
    assert "<strong>75 %</strong> of 4 files" in page
    assert page.index(first["remedy"]) < page.index("empty_file")
    assert "owner was charged 7 pages so far." in page


async def test_a_connection_that_waits_for_somebody_comes_first(house: House) -> None:
    async with house.rig.catalog.write() as connection:
        values = {"attention": Reason.MASS_REMOVAL, "paused": True}
        await connection.execute(connections.update().values(values))

    answer = (await house.get("/v1/")).json()

    reasons = [(one["reason"], one["needs_person"]) for one in answer["troubles"]]
    assert reasons[:2] == [("mass_removal", True), ("corrupt", True)]
    assert ("paused", False) in reasons
    assert answer["connections"][0]["seconds_left"] is None


async def test_names_are_text_and_never_markup(house: House) -> None:
    where = f"/connections/{house.connection_id}"
    for address in (where, f"{where}/files/b", "/search?q=<b>x</b>"):
        page = (await house.get(address)).text
        assert "<i>" not in page.replace('<i class="dot', "")
        assert "<b>" not in page
    assert f"&lt;i&gt;{CANARY}&lt;i&gt;.txt" in (await house.get(where)).text


FILTERS = (
    ("", ["Film.txt", "Good.txt", "Waiting.txt", "<i>"]),
    ("standing=failed", ["<i>"]),
    ("standing=&state=&reason=&q=&after=", ["Film.txt", "Good.txt", "Waiting.txt", "<i>"]),
    ("standing=searchable&q=GOOD", ["Good.txt"]),
    ("reason=empty_file", ["Film.txt"]),
    ("state=discovered", ["Waiting.txt"]),
    ("standing=held", []),
)


async def test_files_are_filtered(house: House) -> None:
    for query, names in FILTERS:
        address = f"/connections/{house.connection_id}/files?{query}"
        answer = (await house.get(f"/v1{address}")).json()
        page = (await house.get(address)).text

        known = ("Film.txt", "Good.txt", "Waiting.txt", "<i>")
        listed = [name for one in answer["files"] for name in known if name in one["path"]]
        assert sorted(listed) == sorted(names), query
        for name in known:
            assert (f">{name.replace('<i>', '&lt;i&gt;')}" in page) is (name in names), query


async def test_a_list_goes_on_where_it_ended(house: House) -> None:
    address = f"/connections/{house.connection_id}/files?limit=3"
    first = (await house.get(f"/v1{address}")).json()
    rest = (await house.get(f"/v1{address}", params={"limit": 3, "after": first["next"]})).json()

    assert [len(first["files"]), len(rest["files"])] == [3, 1]
    assert rest["next"] is None
    page = (await house.get(address)).text
    assert f"after={first['next']}" in page
    assert "That is all." not in page


async def test_the_passport_tells_the_story(house: House) -> None:
    where = f"/connections/{house.connection_id}/files"
    failed = (await house.get(f"/v1{where}/b")).json()
    good = (await house.get(f"/v1{where}/a")).json()

    (version,) = failed["versions"]
    assert version["standing"] == "failed"
    assert version["whys"][0]["reason"] == "corrupt"
    assert version["story"][-1]["words"] == "refused (corrupt): not a <zip>"
    assert version["object_key"] is None
    assert version["charged_pages"] is None
    (version,) = good["versions"]
    assert good["path"] == f"{CANARY}/Good.txt"
    assert version["standing"] == "searchable"
    assert version["charged_pages"] == 7
    assert version["object_key"].endswith("/1")
    assert [step["event"] for step in version["story"]] == [
        "admitted",
        "stored",
        "submitting",
        "accepted",
        "settled",
    ]
    page = (await house.get(f"{where}/b")).text
    assert failed["versions"][0]["whys"][0]["remedy"] in page
    assert "refused (corrupt): not a &lt;zip&gt;" in page
    assert "<button" not in page.replace("<button>Sign out</button>", "")


async def test_a_search_leads_to_passports(house: House) -> None:
    answer = (await house.get("/v1/search?q=plan")).json()
    assert [hit["path"] for hit in answer["hits"]] == [f"{CANARY}/plan.txt"]
    page = (await house.get("/search?q=plan")).text
    assert "&lt;b&gt;<mark>the plan</mark>&lt;/b&gt;" in page
    assert "0 documents." in (await house.get("/search?q=nothing")).text


async def test_the_description_of_the_api_knows_every_address(house: House) -> None:
    described = (await house.get("/v1/openapi.json")).json()

    assert set(described["paths"]) == {
        "/v1/",
        "/v1/connections/{connection_id}",
        "/v1/connections/{connection_id}/files",
        "/v1/connections/{connection_id}/files/{item_id}",
        "/v1/index",
        "/v1/search",
        "/v1/events",
        "/v1/usage",
        "/v1/usage/entries",
    }
    assert all(set(methods) == {"get"} for methods in described["paths"].values())


PROBLEMS = (
    ("/v1/nothing", 404, "not_found"),
    ("/v1/connections/none", 404, "not_found"),
    ("/v1/connections/{}/files?standing=lying", 400, "bad_request"),
    ("/v1/connections/{}/files?limit=0", 400, "bad_request"),
    ("/v1/connections/{}/files?after=x", 400, "bad_request"),
    ("/v1/connections/{}/files/none", 404, "not_found"),
)


async def test_problems_name_a_reason_and_a_remedy(house: House) -> None:
    for form, status, reason in PROBLEMS:
        address = form.format(house.connection_id)
        answer = await house.get(address)
        assert answer.status_code == status, address
        assert answer.headers["content-type"] == "application/problem+json"
        members = answer.json()
        assert members["status"] == status
        assert members["reason"] == reason
        assert members["type"] == f"urn:drivefeed:problem:{reason}"
        assert members["remedy"].endswith(".")
        page = await house.get(address.removeprefix("/v1"))
        assert page.status_code == status, address
        assert page.headers["content-type"].startswith("text/html")


async def test_nothing_can_be_changed(house: House) -> None:
    async with house.client(house.key) as client:
        for address in ("/v1/", f"/v1/connections/{house.connection_id}"):
            for method in ("POST", "PUT", "PATCH", "DELETE"):
                answer = await client.request(method, address)
                assert answer.status_code == 405
                assert answer.json()["remedy"]


async def test_usage_is_told_by_page_and_api(house: House) -> None:
    limit = Limit(10, Period.MONTH)
    await set_limit(house.rig.catalog, house.rig.org_id, limit, actor="test")
    answer = (await house.get("/v1/usage")).json()
    assert (answer["org"], answer["limit"], answer["period"]) == ("owner", 10, "month")
    assert (answer["used"], answer["free"], answer["percent"]) == (7, 3, 70)
    page = (await house.get("/")).text
    assert "7 of 10 pages a month used, 3 free; counted anew on " in page
    assert 'value="70"' in page
    assert (await house.get("/v1/")).json()["usage"] == answer


async def test_entries_of_the_ledger_are_paged_and_ones_own(house: House) -> None:
    await correct(house.rig.catalog, house.rig.org_id, 2, reason="a scan", actor="test")
    first = (await house.get("/v1/usage/entries?limit=1")).json()
    assert [one["document"] for one in first["entries"]] == ["Good.txt"]
    rest = (await house.get(f"/v1/usage/entries?after={first['next']}")).json()
    assert [(one["kind"], one["reason"]) for one in rest["entries"]] == [("correction", "a scan")]
    assert rest["next"] is None
    where = f"/v1/usage/entries?connection={house.connection_id}"
    assert len((await house.get(where)).json()["entries"]) == 1
    assert (await house.get(where, house.strange_key)).json()["entries"] == []
    assert (await house.get("/v1/usage/entries?limit=0")).status_code == 400
