"""Each form of an address leads to the right ids; each wrong one to its own sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph.addresses import parse_address
from drivefeed.sources.graph.resolve import resolve
from integration.graph_source.town import HOST, MY, Town, town

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.sources.graph.folders import ResolvedFolder


@pytest.fixture
async def place() -> AsyncIterator[Town]:
    async with town(page_size=2) as made:
        yield made


async def found(place: Town, text: str, account: str = "app") -> ResolvedFolder:
    return await resolve(await place.look(account), parse_address(text))


async def refused(
    place: Town, text: str, account: str = "app", reason: Reason | None = None
) -> str:
    with pytest.raises(NeedsAttention) as caught:
        await found(place, text, account)
    assert reason in {None, caught.value.reason}
    return str(caught.value)


async def test_every_form_of_a_folder_in_a_site(place: Town) -> None:
    site, (docs, *_) = place.site("Lab", "Method Sheets", "Archive", "Pictures")
    folder = place.folder(docs, "Trials/C# & more/100% done")
    path = "/sites/Lab/Shared Documents/Trials/C# & more/100% done"
    guid = "4be51f3a-0f22-4d0e-8c55-2a5d3f6a7b10"
    option = quote(path, safe="")
    library = quote(f"{HOST}/sites/Lab/Shared Documents", safe="")
    view = f"{HOST}/sites/Lab/Shared%20Documents/Forms/AllItems.aspx"
    forms = [
        f"{HOST}{quote(path)}",
        f"  {HOST}{quote(path).upper().replace('%2D', '-')}?web=1 \n",
        f"{HOST}/:f:/r{quote(path)}?d=w{guid}&csf=1&web=1&e=aBc",
        f"{view}?id={option}&viewid={guid}",
        f"{view}?RootFolder={option}",
        f"{MY}/my?id={option}&listurl={library}",
        place.sim.estate.share(docs, folder),
        quote(path),
        f"{docs.id}:/Trials/C# & more/100% done",
    ]
    for form in forms:
        got = await found(place, form)
        assert (got.drive_id, got.item_id) == (docs.id, folder.id), form
        assert got.path == "Trials/C# & more/100% done"
        assert (got.kind, got.name) == ("folder", "100% done")
        assert (got.account_name, got.drive_name) == ("app", "Documents")
        assert got.root_id == docs.tree.root_id
        assert got.ancestors[-1] == docs.tree.root_id
        assert len(got.ancestors) == 3
        if "b!" not in form:
            assert (got.site_name, got.site_url) == ("Lab", site.web_url)


async def test_a_library_on_the_second_page_of_libraries(place: Town) -> None:
    _, drives = place.site("Lab", "Lab", "Method Sheets", "Method Sheets (old)")
    wanted = drives[3]
    folder = place.folder(wanted, "A")
    got = await found(place, f"{HOST}/sites/Lab/Method%20Sheets%20(old)/A")
    assert (got.drive_id, got.item_id) == (wanted.id, folder.id)
    whole = await found(place, f"{HOST}/sites/Lab/method sheets/Forms/AllItems.aspx")
    assert (whole.drive_id, whole.item_id) == (drives[2].id, drives[2].tree.root_id)
    assert (whole.path, whole.kind, whole.ancestors) == ("", "root", ())


async def test_a_sites_own_address_means_its_only_library(place: Town) -> None:
    _, (docs,) = place.site("Lab")
    for form in (f"{HOST}/sites/Lab", f"{HOST}/sites/Lab/SitePages/Home.aspx"):
        got = await found(place, form)
        assert (got.drive_id, got.kind) == (docs.id, "root")


async def test_a_site_with_several_libraries_is_asked_about(place: Town) -> None:
    place.site("Lab", "Method Sheets", "Archive")
    said = await refused(place, f"{HOST}/sites/Lab")
    assert "has 3 document libraries" in said
    assert f"Archive: {HOST}/sites/Lab/Archive" in said


async def test_a_library_of_a_subsite(place: Town) -> None:
    place.site("Lab")
    site = place.sim.add_site("Trials", "/sites/Lab/Trials")
    folder = place.folder(site.drives[0], "A")
    got = await found(place, f"{HOST}/sites/Lab/Trials/Shared%20Documents/A")
    assert (got.item_id, got.site_name) == (folder.id, "Trials")


async def test_somebodys_onedrive(place: Town) -> None:
    ana = place.sim.add_person("ana@graphsim.invalid", "Ana")
    folder = place.folder(ana.drives[0], "Plans/2026")
    path = "/personal/ana_graphsim_invalid/Documents/Plans/2026"
    place.join("ana", ana, ("Files.Read",))
    forms = [
        (f"{MY}{path}", "app"),
        (f"{MY}/my?id={quote(path, safe='')}&ga=1", "app"),
        (f"{MY}/:f:/r{path}?csf=1", "app"),
        (f"{MY}/personal/ana_graphsim_invalid/_layouts/15/onedrive.aspx?id={quote(path)}", "app"),
        (path, "app"),
        ("ana@graphsim.invalid:/Plans/2026", "app"),
        (place.sim.estate.share(ana.drives[0], folder), "app"),
        ("me:/Plans/2026", "ana"),
        ("/plans/2026", "ana"),
        (place.sim.estate.share(ana.drives[0], folder), "ana"),
        # Without a right to look at sites, the folder itself can still be asked for.
        (f"{MY}{path}", "ana"),
    ]
    for form, account in forms:
        got = await found(place, form, account)
        assert (got.drive_id, got.item_id) == (ana.drives[0].id, folder.id), (form, account)
        assert got.path == "Plans/2026"
    whole = await found(place, MY, "ana")
    assert (whole.drive_id, whole.kind) == (ana.drives[0].id, "root")


async def test_an_app_that_may_read_files_but_no_sites(place: Town) -> None:
    _, (docs,) = place.site("Lab")
    folder = place.folder(docs, "A")
    place.join("files", None, ("Files.Read.All",))
    got = await found(place, f"{HOST}/sites/Lab/Shared%20Documents/A", "files")
    assert (got.item_id, got.site_name) == (folder.id, None)


async def test_the_personal_onedrive() -> None:
    from graphsim.serving import serve
    from integration.graph_source.kit import sim_state

    async with serve(state=sim_state(), profile="personal") as sim:
        place = Town(sim)
        place.join("me", sim.directory.person, ("Files.Read",), tenant_id="consumers")
        drive = sim.memory
        folder = place.folder(drive, "Letters/2026")
        cid = drive.id.upper()
        try:
            for form in (
                f"https://onedrive.live.com/?id={quote(folder.id, safe='')}&cid={cid}",
                f"https://onedrive.live.com/#id={quote(folder.id, safe='')}&cid={cid}",
                f"https://onedrive.live.com/?id=%2Fpersonal%2F{cid}%2FDocuments%2FLetters%2F2026",
                f"https://d.docs.live.net/{cid}/Letters/2026",
                sim.estate.share(drive, folder),
                "me:/Letters/2026",
            ):
                got = await found(place, form, "me")
                assert (got.drive_id, got.item_id) == (drive.id, folder.id), form
                assert got.drive_type == "personal"
            assert (await found(place, "https://onedrive.live.com", "me")).kind == "root"
            said = await refused(place, f"{HOST}/sites/Lab", "me")
            assert "There is no site" in said
            said = await refused(place, "https://contoso.sharepoint.com/sites/Lab", "me")
            assert "is a personal one" in said
        finally:
            await place.source.aclose()


async def test_what_is_no_folder(place: Town) -> None:
    _, (docs,) = place.site("Lab")
    folder = place.folder(docs, "Trials")
    docs.create_file("plan.txt", b"1", folder.id)
    docs.create_file("plan.docx", b"1", folder.id)
    notebook = docs.create_package("Notebook", folder.id)
    base = f"{HOST}/sites/Lab/Shared%20Documents"
    for form in (
        f"{base}/Trials/plan.txt",
        f"{HOST}/:w:/r/sites/Lab/Shared%20Documents/Trials/plan.docx?d=1",
    ):
        said = await refused(place, form)
        assert "is a file; a connection follows a folder" in said
        assert said.endswith(f"{base}/Trials")
    said = await refused(place, place.sim.estate.share(docs, notebook))
    assert "'Notebook' is a OneNote notebook" in said
    said = await refused(place, f"{base}/Trials/nothing/here")
    assert "There is no 'nothing' in the folder 'Trials' of the library 'Documents'" in said
    said = await refused(place, f"{base}/nothing")
    assert "There is no 'nothing' in the library 'Documents'" in said


async def test_a_file_opened_in_its_viewer(place: Town) -> None:
    _, (docs,) = place.site("Lab")
    file = docs.create_file("plan.docx", b"1", place.folder(docs, "Trials").id)
    look = await place.look()
    shown = await look.ask(f"/drives/{docs.id}/items/{file.id}", "a file")
    assert "Doc.aspx" in shown["webUrl"]
    said = await refused(place, shown["webUrl"])
    assert said.endswith(f"Its folder is at {HOST}/sites/Lab/Shared%20Documents/Trials")


async def test_a_list_and_an_unknown_library_and_an_unknown_site(place: Town) -> None:
    place.site("Lab", "Archive")
    said = await refused(place, f"{HOST}/sites/Lab/Lists/Tasks/AllItems.aspx")
    assert "is a list and holds no files" in said
    said = await refused(place, f"{HOST}/sites/Lab/Wrong/A")
    assert "has no document library 'Wrong'" in said
    assert "Archive: " in said
    said = await refused(place, f"{HOST}/sites/Nowhere/Docs")
    assert said.startswith(f"There is no site at '{HOST}/sites/Nowhere'")


async def test_another_tenant_and_another_cloud(place: Town) -> None:
    place.site("Lab")
    for path in ("sites/Lab/Docs", ":f:/s/Lab/EkPq"):
        said = await refused(place, f"https://fabrikam.sharepoint.invalid/{path}")
        assert "'fabrikam.sharepoint.invalid' belongs to another organization" in said
        said = await refused(place, f"https://agency.sharepoint.us/{path}")
        assert "US Government L4" in said
    said = await refused(place, "https://1drv.ms/f/s!Ak")
    assert "belongs to a personal OneDrive" in said


async def test_what_the_account_may_not_read(place: Town) -> None:
    site, (docs,) = place.site("Lab")
    place.folder(docs, "A")
    url = f"{HOST}/sites/Lab/Shared%20Documents/A"
    place.join("selected", None, ("Sites.Selected",))
    said = await refused(place, url, "selected", Reason.GRANT_MISSING)
    assert "'selected' may not read" in said
    assert "grant it this very site" in said
    site.grant(place.sim.directory.client_id, "read")
    assert (await found(place, url, "selected")).path == "A"
    ana = place.sim.add_person("ana@graphsim.invalid")
    place.join("ana", ana, ("Sites.Read.All", "Files.Read.All"))
    site.members = set()
    said = await refused(place, url, "ana")
    assert "make that person a member" in said
    ben = place.sim.add_person("ben@graphsim.invalid")
    place.folder(ben.drives[0], "Plans")
    said = await refused(place, f"{MY}/personal/ben_graphsim_invalid/Documents/Plans", "ana")
    assert "lies in somebody's own OneDrive" in said
    assert "share the folder with that person" in said
    place.join("nobody", None, ("User.Read.All",))
    said = await refused(place, url, "nobody", Reason.CONSENT_MISSING)
    assert "with admin consent" in said
    site.lock()
    said = await refused(place, url, reason=Reason.SITE_LOCKED)
    assert "is locked or archived" in said


async def test_links_and_drives_that_lead_nowhere(place: Town) -> None:
    _, (docs,) = place.site("Lab")
    link = place.sim.estate.share(docs, place.folder(docs, "A"))
    place.sim.estate.revoke(link)
    said = await refused(place, link)
    assert "it was revoked or has expired" in said
    ben = place.sim.add_person("ben@graphsim.invalid")
    place.join("ana", place.sim.add_person("ana@graphsim.invalid"), ("Files.Read.All",))
    link = place.sim.estate.share(ben.drives[0], place.folder(ben.drives[0], "Plans"))
    said = await refused(place, link, "ana")
    assert "opens 'Plans' for the account 'ana', but not the library it lies in" in said
    said = await refused(place, "b!" + "A" * 30)
    assert "There is no drive" in said


async def test_people_without_a_onedrive(place: Town) -> None:
    dan = place.sim.add_person("dan@graphsim.invalid", onedrive=False)
    place.join("dan", dan, ("Files.Read",))
    assert "has no OneDrive of its own" in await refused(place, "me:/A")
    for _ in range(2):  # Graph has two ways to say it.
        said = await refused(place, "dan@graphsim.invalid:/A", reason=Reason.NO_ONEDRIVE)
        assert "'dan@graphsim.invalid' has no OneDrive, or there is no such person" in said
        assert "The person who signed in has no OneDrive" in await refused(place, "me:/A", "dan")
    said = await refused(place, "nobody@graphsim.invalid")
    assert "'nobody@graphsim.invalid' has no OneDrive" in said
