from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from graphsim.clock import ManualClock
from graphsim.serving import GraphSim, serve

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def sim() -> AsyncIterator[GraphSim]:
    async with serve(clock=ManualClock(), page_size=2) as running:
        yield running


class Ask:
    def __init__(self, sim: GraphSim, client: httpx.AsyncClient) -> None:
        self._sim = sim
        self._client = client

    async def __call__(self, path: str, **who: Any) -> tuple[int, dict[str, Any]]:
        token = self._sim.access_token(**who)
        url = path if path.startswith("http") else f"{self._sim.endpoints.graph_url}{path}"
        answer = await self._client.get(url, headers={"Authorization": f"Bearer {token}"})
        return answer.status_code, answer.json()

    async def names(self, path: str, **who: Any) -> list[str]:
        names: list[str] = []
        while path:
            status, page = await self(path, **who)
            assert status == 200, page
            names += [one["name"] for one in page["value"]]
            path = page.get("@odata.nextLink", "")
        return names


@pytest.fixture
async def ask(sim: GraphSim) -> AsyncIterator[Ask]:
    async with httpx.AsyncClient(timeout=10) as client:
        yield Ask(sim, client)


def _encoded(url: str) -> str:
    return "u!" + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


async def test_sites_are_found_by_search_path_and_id(sim: GraphSim, ask: Ask) -> None:
    sites = [sim.add_site(name) for name in ("Research", "Research Archive", "Legal")]
    sim.add_library(sites[0], "Contracts 2026")
    assert await ask.names("/sites?search=*") == ["Research", "ResearchArchive", "Legal"]
    assert await ask.names("/sites?search=research") == ["Research", "ResearchArchive"]
    host = sim.directory.sharepoint_host
    for key in (f"{host}:/sites/research", f"{host}:/sites/Research:", sites[0].id):
        status, site = await ask(f"/sites/{key}")
        assert (status, site["id"]) == (200, sites[0].id)
        assert site["webUrl"] == f"https://{host}/sites/Research"
    assert await ask.names(f"/sites/{host}:/sites/Research:/drives") == [
        "Documents",
        "Contracts 2026",
    ]
    _, library = await ask(f"/sites/{host}:/sites/Research:/drive")
    assert library["webUrl"] == f"https://{host}/sites/Research/Shared%20Documents"
    assert (await ask(f"/sites/{host}:/sites/Nowhere"))[0] == 404


async def test_everybody_has_their_own_onedrive(sim: GraphSim, ask: Ask) -> None:
    ada = sim.add_person("ada@graphsim.invalid", "Ada")
    _, mine = await ask("/me/drive", person=ada)
    assert mine["owner"]["user"]["displayName"] == "Ada"
    assert mine["webUrl"].endswith("-my.sharepoint.invalid/personal/ada_graphsim_invalid/Documents")
    assert (await ask(f"/users/{ada.name}/drive"))[1]["id"] == mine["id"]
    status, refused = await ask(f"/drives/{sim.drive.id}/root", person=ada)
    assert (status, refused["error"]["code"]) == (403, "accessDenied")
    sim.drive.readers.add(ada.id)
    assert (await ask(f"/drives/{sim.drive.id}/root", person=ada))[0] == 200


async def test_a_user_without_onedrive_is_refused_in_both_ways(sim: GraphSim, ask: Ask) -> None:
    bob = sim.add_person("bob@graphsim.invalid", onedrive=False)
    first, second = [await ask(f"/users/{bob.name}/drive") for _ in range(2)]
    assert (first[0], first[1]["error"]["message"]) == (404, "User's mysite was not found.")
    assert (second[0], second[1]["error"]["code"]) == (400, "invalidRequest")


async def test_sharing_links_and_web_urls_lead_to_items(sim: GraphSim, ask: Ask) -> None:
    site = sim.add_site("Research")
    drive = sim.app.drives[-1]
    folder = sim.memory.create_folder("My folder")
    deck = sim.memory.create_file("a deck.pptx", b"x", folder.id)
    link = sim.estate.share(sim.memory, folder)
    assert "-my.sharepoint.invalid/:f:/g/personal/owner_graphsim_invalid/E" in link
    assert sim.estate.share(drive, drive.tree.root).startswith(
        f"https://{site.host}/:f:/s/Research/E"
    )
    for item in (folder, deck):
        _, shown = await ask(f"/drives/{sim.drive.id}/items/{item.id}")
        _, found = await ask(f"/shares/{_encoded(shown['webUrl'])}/driveItem")
        assert (found["id"], found["parentReference"]["driveId"]) == (item.id, sim.drive.id)
    assert "/_layouts/15/Doc.aspx?sourcedoc=%7B" in shown["webUrl"]
    assert (await ask(f"/shares/{_encoded(link)}/driveItem"))[1]["id"] == folder.id
    children = await ask.names(f"/shares/{_encoded(link)}/driveItem/children")
    assert children == ["a deck.pptx"]
    sim.estate.revoke(link)
    assert (await ask(f"/shares/{_encoded(link)}/driveItem"))[0] == 403
    assert (await ask("/shares/nonsense/driveItem"))[0] == 400


async def test_a_locked_site_refuses_every_call(sim: GraphSim, ask: Ask) -> None:
    site = sim.add_site("Legal")
    site.lock()
    for path in (f"/drives/{site.drives[0].id}", f"/sites/{site.id}/drive/root/delta"):
        status, body = await ask(path)
        assert (status, body["error"]["code"]) == (423, "notAllowed")
    site.lock(locked=False)
    assert (await ask(f"/sites/{site.id}/drive"))[0] == 200


async def test_selected_sites_need_a_grant(sim: GraphSim, ask: Ask) -> None:
    granted, other = sim.add_site("Granted"), sim.add_site("Other")
    selected = sim.add_app("selected", roles={"Sites.Selected"})
    root = f"/drives/{granted.drives[0].id}/root"
    assert (await ask(root, app=selected))[0] == 403
    owner = sim.add_app("owner", roles={"Sites.FullControl.All"})
    body = {
        "roles": ["read"],
        "grantedToIdentities": [{"application": {"id": selected.client_id, "displayName": "x"}}],
    }
    url = f"{sim.endpoints.graph_url}/sites/{granted.id}/permissions"
    async with httpx.AsyncClient() as client:
        weak = {"Authorization": f"Bearer {sim.access_token()}"}
        assert (await client.post(url, json=body, headers=weak)).status_code == 403
        strong = {"Authorization": f"Bearer {sim.access_token(app=owner)}"}
        made = await client.post(url, json=body, headers=strong)
        assert (made.status_code, made.json()["roles"]) == (201, ["read"])
        assert (await ask(root, app=selected))[0] == 200
        assert (await ask(f"/sites/{granted.id}", app=selected))[0] == 200
        assert await ask.names("/sites?search=*", app=selected) == ["Granted"]
        assert (await ask(f"/drives/{other.drives[0].id}/root", app=selected))[0] == 403
        gone = await client.delete(f"{url}/{made.json()['id']}", headers=strong)
        assert gone.status_code == 204
    assert (await ask(root, app=selected))[0] == 403


async def test_another_tenant_sees_nothing_of_ours(sim: GraphSim, ask: Ask) -> None:
    tenant = sim.directory.add_tenant("elsewhere.invalid")
    eve = sim.add_person("eve@elsewhere.invalid", tenant_id=tenant)
    site = sim.add_site("Ours")
    assert (await ask("/me/drive", person=eve))[0] == 200
    assert (await ask(f"/drives/{sim.drive.id}", person=eve))[0] == 404
    assert (await ask(f"/sites/{site.id}", person=eve))[0] == 404
    assert await ask.names("/sites?search=*", person=eve) == []


async def test_folders_can_be_libraries_of_sites(tmp_path: Path) -> None:
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / "a.txt").write_text("x")
    async with serve(sites={"Research": folder}, people=("ada@x.invalid",)) as sim:
        (facts,) = (one for one in sim.endpoints.drives if one.folder)
        assert facts.web_url.endswith("/sites/Research/Shared%20Documents")
        async with httpx.AsyncClient() as client:
            headers = {"Authorization": f"Bearer {sim.access_token()}"}
            url = f"{sim.endpoints.graph_url}/drives/{facts.drive_id}/root/children"
            page = (await client.get(url, headers=headers)).json()
        assert [one["name"] for one in page["value"]] == ["a.txt"]
        assert page["value"][0]["webUrl"] == f"{facts.web_url}/a.txt"
        assert sim.directory.find_person("ADA@x.invalid") is not None
