"""The permission probe: what an account has, what is missing, what is more than needed."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from azure.core.credentials import AccessToken

from drivefeed.domain.nothing import nothing_eligible, nothing_found, nothing_permitted
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph import ClientCertificate, GraphSource, SignedInUser
from drivefeed.sources.graph.claims import read_claims
from drivefeed.sources.graph.permissions import ROLE_IDS, excess, opens
from drivefeed.sources.graph.probe import probe
from graphsim.serving import GraphSim, serve
from graphsim.tenancy import KeyCredential
from integration.graph_source.certificates import certificate
from integration.graph_source.kit import PlainIds, RealClock, account_of, sim_state, source_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.sources.graph.probe_report import ProbeReport


@pytest.fixture
async def sim() -> AsyncIterator[GraphSim]:
    async with serve(state=sim_state()) as running:
        yield running


@asynccontextmanager
async def probing(sim: GraphSim, **changes: Any) -> AsyncIterator[Any]:
    source = source_of(account_of(sim, **changes), RealClock())
    client = await source.client("sim")

    async def ask(**target: Any) -> ProbeReport:
        return await probe(client, **target)

    try:
        yield ask
    finally:
        await source.aclose()


def _names(report: ProbeReport) -> dict[str, bool | None]:
    return {check.name: check.ok for check in report.checks}


async def test_all_is_well(sim: GraphSim) -> None:
    sim.memory.create_file("a.txt", b"content")
    async with probing(sim) as ask:
        report = await ask(drive_id=sim.memory.id)
    assert report.verdict == "ok"
    assert _names(report) == dict.fromkeys(
        ("sign_in", "drive", "changes", "content", "clock"), True
    )
    assert report.has == ("Files.Read.All", "Sites.Read.All")
    assert sim.endpoints.client_id in report.signed_in_as
    assert (report.missing, report.excess, report.granted) == ((), {}, None)
    assert report.skew is not None
    assert abs(report.skew) < 30
    assert [one.range for one in sim.log.entries(op="download")] == ["bytes=0-0"]
    assert not sim.log.leaked_authorization()


async def test_a_certificate_with_selected_sites_needs_the_grant(sim: GraphSim) -> None:
    """Row 4 of what is shown: signs in; the missing grant is named; with it, all is well."""
    pem, public = certificate()
    sim.directory.app.certificates.append(KeyCredential(public))
    sim.directory.app.roles = {"Sites.Selected"}
    site = sim.add_site("Research")
    sim.library(site).create_file("a.txt", b"x")
    drive_id = site.drives[0].id
    async with probing(sim, sign_in=ClientCertificate(pem)) as ask:
        refused = await ask(drive_id=drive_id)
        assert refused.verdict == "failed"
        assert refused.has == ("Sites.Selected",)
        assert refused.granted is False
        assert _names(refused) == {"sign_in": True, "drive": False, "clock": True}
        assert refused.checks[1].reason is Reason.GRANT_MISSING
        (missing,) = refused.missing
        assert missing.startswith("The grant of the site to app")
        assert sim.endpoints.client_id in missing
        assert refused.nothing is not None
        assert refused.nothing.startswith("Nothing is permitted")
        named = await ask(url=f"{site.web_url}/Shared%20Documents")
        assert f"The grant of '{site.web_url}" in named.missing[0]
        site.grant(sim.endpoints.client_id, "read")
        granted = await ask(drive_id=drive_id)
        assert (granted.verdict, granted.granted, granted.missing) == ("ok", True, ())


async def test_full_control_is_named_as_excess(sim: GraphSim) -> None:
    sim.directory.app.roles = {"Sites.FullControl.All", "Mail.Read"}
    sim.memory.create_file("a.txt", b"x")
    async with probing(sim) as ask:
        report = await ask(drive_id=sim.memory.id)
    assert report.verdict == "warning"
    assert "change permissions" in report.excess["Sites.FullControl.All"]
    assert report.excess["Mail.Read"] == "is not used by drivefeed"


async def test_no_permission_at_all_is_missing_by_name(sim: GraphSim) -> None:
    sim.directory.app.roles = set()
    async with probing(sim) as ask:
        report = await ask(drive_id=sim.memory.id)
    assert report.checks[1].reason is Reason.CONSENT_MISSING
    assert "application permission Files.Read.All" in report.missing[0]


async def test_a_refused_sign_in_ends_the_probe(sim: GraphSim) -> None:
    sim.directory.app.secrets[0].expires = 0.0
    async with probing(sim) as ask:
        report = await ask(drive_id=sim.memory.id)
    assert report.checks[0].reason is Reason.SECRET_EXPIRED
    assert (report.verdict, report.signed_in_as, report.has) == ("failed", "", None)


async def test_an_empty_drive_and_a_link_that_leads_nowhere(sim: GraphSim) -> None:
    async with probing(sim) as ask:
        empty = await ask(drive_id=sim.memory.id)
        assert empty.verdict == "warning"
        assert empty.nothing is not None
        assert empty.nothing.startswith("Nothing was found")
        nowhere = await ask(url="https://graphsim.sharepoint.invalid/:f:/s/Nowhere/Ea?e=b")
    assert nowhere.verdict == "failed"
    assert nowhere.checks[1].name == "drive"


async def test_a_mistyped_place_is_told_from_one_that_is_gone(sim: GraphSim) -> None:
    async with probing(sim) as ask:
        mistyped = await ask(drive_id="zzz")
        gone = await ask(drive_id="zzz", is_connected=True)
        others = [
            await ask(url="https://graphsim.sharepoint.invalid/sites/Nope"),
            await ask(url="/Reports"),
        ]
    check = mistyped.checks[1]
    assert (mistyped.verdict, check.ok, check.reason) == ("failed", False, None)
    assert "There is no drive 'zzz' that account 'sim' can see. Check its id" in check.sentence
    assert gone.checks[1].reason is Reason.DRIVE_GONE
    for one in (mistyped, gone, *others):
        assert one.nothing is None, "it is not known that anything is forbidden"
    assert [one.checks[1].reason for one in others] == [None, None]


async def test_content_that_may_not_be_read(sim: GraphSim) -> None:
    sim.memory.create_file("a.txt", b"x")
    sim.faults.add("status", op="content", status=403)
    async with probing(sim) as ask:
        report = await ask(drive_id=sim.memory.id)
    assert _names(report)["content"] is False
    assert report.checks[3].reason is Reason.DOWNLOAD_FORBIDDEN


@pytest.mark.parametrize(
    ("skew", "ok", "words"),
    [(-600, False, "600 s ahead of"), (600, False, "600 s behind"), (120, True, "s behind")],
)
async def test_a_clock_that_is_off(sim: GraphSim, skew: float, *, ok: bool, words: str) -> None:
    sim.memory.create_file("a.txt", b"x")
    sim.directory.token_lifetime = 7200
    sim.skew = skew
    async with probing(sim) as ask:
        report = await ask(drive_id=sim.memory.id)
    clock = report.checks[-1]
    assert (clock.name, clock.ok) == ("clock", ok)
    assert words.split()[1] in clock.sentence
    assert words.rpartition("s ")[2] in clock.sentence
    assert clock.reason is (None if ok else Reason.CLOCK_WRONG)
    assert report.skew == pytest.approx(-skew, abs=30)


class _Person:
    """A person's sign-in, with a token that graphsim gave for the asking."""

    generation = 0

    def __init__(self, sim: GraphSim, *permissions: str) -> None:
        self._token = sim.access_token(person=sim.directory.person, permissions=permissions)

    async def get_token(self, *_: str, **__: Any) -> AccessToken:
        return AccessToken(self._token, 2**33)

    async def renew(self, *_: Any) -> None:
        raise AssertionError("The token is good.")

    async def close(self) -> None:
        pass


async def test_a_person_is_told_by_name_and_reads_their_own_drive(sim: GraphSim) -> None:
    sim.memory.create_file("a.txt", b"x")
    other = sim.add_person("ada@graphsim.invalid")
    account = account_of(sim, sign_in=SignedInUser("home", sim.endpoints.user_name))
    source = GraphSource(
        {"sim": account},
        clock=RealClock(),
        ids=PlainIds(),
        credential=lambda _: _Person(sim, "Files.Read"),
    )
    try:
        client = await source.client("sim")
        own = await probe(client)
        assert (own.verdict, own.has) == ("ok", ("Files.Read",))
        assert own.signed_in_as.startswith(f"{sim.endpoints.user_name} through app")
        hers = await probe(client, drive_id=other.drives[0].id)
        assert hers.missing[0].startswith("Files.Read.All is missing: Files.Read opens the person")
    finally:
        await source.aclose()


async def test_somebody_without_a_onedrive_is_refused_in_both_ways(sim: GraphSim) -> None:
    bob = sim.add_person("bob@graphsim.invalid", onedrive=False)
    async with probing(sim) as ask:
        for status in ("404", "400"):
            check = (await ask(user=bob.name)).checks[1]
            assert check.reason is Reason.NO_ONEDRIVE
            assert f"'{bob.name}' has no OneDrive." in check.sentence
            assert status in check.sentence
        nobody = (await ask(user="nobody@graphsim.invalid")).checks[1]
        assert (nobody.ok, nobody.reason) == (False, None)
        assert "There is nobody called" in nobody.sentence


def test_a_token_is_only_read(sim: GraphSim) -> None:
    claims = read_claims(sim.access_token(person=sim.directory.person))
    assert claims is not None
    assert claims.user == sim.endpoints.user_name
    assert claims.permissions == {"Files.Read.All", "Sites.Read.All"}
    for odd in ("", "EwBopaque", "a.b.c", "a.e30.c.d", "a.W10.c"):
        assert read_claims(odd) is None
    empty = read_claims("a.e30.c")
    assert empty is not None
    assert empty.permissions == frozenset()


@pytest.mark.parametrize(
    ("permissions", "opened", "too_much"),
    [
        ({"Files.Read.All"}, "all", set()),
        ({"Sites.FullControl.All"}, "all", {"Sites.FullControl.All"}),
        ({"Files.ReadWrite.All", "User.Read"}, "all", {"Files.ReadWrite.All"}),
        ({"Files.Read", "offline_access", "openid"}, "own", set()),
        ({"Sites.Selected"}, "selected", set()),
        ({"Mail.Send"}, "nothing", {"Mail.Send"}),
        (set(), "nothing", set()),
    ],
)
def test_what_permissions_open(permissions: set[str], opened: str, too_much: set[str]) -> None:
    assert opens(frozenset(permissions)) == opened
    assert set(excess(frozenset(permissions))) == too_much


def test_the_ids_of_permissions_are_microsofts() -> None:
    """Read in Microsoft's permissions reference; a change here opens something else."""
    assert ROLE_IDS == {
        "Files.Read.All": "01d4889c-1287-42c6-ac1f-5d1e02578ef6",
        "Sites.Read.All": "332a536c-c7ef-4017-ab91-336970924f0d",
        "Sites.Selected": "883ea226-0bf2-4a8f-9f9d-92c9162a727d",
    }


def test_nothing_is_three_things() -> None:
    found = nothing_found("Reports")
    permitted = nothing_permitted("Reports", "Microsoft Graph answered 403.")
    eligible = nothing_eligible(
        "Reports", {Reason.TYPE_NOT_INCLUDED: 12, Reason.LARGER_THAN_LIMIT: 1}
    )
    assert len({found.split(":")[0], permitted.split(":")[0], eligible.split(":")[0]}) == 3
    assert permitted.endswith("Microsoft Graph answered 403.")
    assert "13 files are in 'Reports'" in eligible
    assert "12: Its file type" in eligible
    assert "1 file is in" in nothing_eligible("Reports", {Reason.EMPTY_FILE: 1})
