"""People sign in with the real MSAL at graphsim's Entra, over https."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from drivefeed.domain.errors import NeedsAttention, PartDown
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph.loopback import DONE, NOTHING_HERE, REPLAYED, WRONG_STATE, listening
from drivefeed.sources.graph.sign_in import sign_in_by_browser, sign_in_by_device
from graphsim.clock import ManualClock
from graphsim.serving import serve
from graphsim.tenancy import CONSUMERS
from integration.delegated.kit import PatientClock, account_at, other_person_at, signed_in, state_of
from integration.graph_source.kit import HurriedClock, sim_state

if TYPE_CHECKING:
    from drivefeed.sources.graph.sign_in import DeviceCode
    from graphsim.serving import GraphSim
    from integration.delegated.kit import Person


async def test_a_device_code_signs_in_who_enters_it(sim: GraphSim, person: Person) -> None:
    seen: list[DeviceCode] = []

    async def show(code: DeviceCode) -> None:
        seen.append(code)
        await person.enters(code)

    found = await sign_in_by_device(account_at(sim), clock=PatientClock(), show=show)
    assert found.user.user_name == sim.endpoints.user_name
    assert found.user.home_account_id == f"{sim.endpoints.user_id}.{sim.endpoints.tenant_id}"
    assert found.tenant_id == sim.endpoints.tenant_id
    assert "Files.Read.All" in found.scopes
    assert '"RefreshToken"' in found.cache
    assert found.cache not in repr(found)
    assert "code" in seen[0].url or seen[0].code


async def test_a_device_code_may_be_entered_late(sim: GraphSim, person: Person) -> None:
    waiting: list[DeviceCode] = []

    async def show(code: DeviceCode) -> None:
        waiting.append(code)

    class Entering(HurriedClock):
        async def sleep(self, seconds: float) -> None:
            await super().sleep(seconds)
            if len(self.slept) == 2:
                await person.enters(waiting[0])

    clock = Entering()
    found = await sign_in_by_device(account_at(sim), clock=clock, show=show)
    assert found.user.user_name == sim.endpoints.user_name
    assert clock.slept == [5, 5]


async def test_declining_is_consent_refused(sim: GraphSim, person: Person) -> None:
    async def show(code: DeviceCode) -> None:
        await person.enters(code, "decline")

    with pytest.raises(NeedsAttention, match="Consent was refused, so nothing was changed"):
        await sign_in_by_device(account_at(sim), clock=PatientClock(), show=show)


async def test_an_expired_device_code_says_so() -> None:
    clock = ManualClock()

    async def show(_: DeviceCode) -> None:
        clock.advance(901)

    async with serve(state=sim_state(), clock=clock) as sim:
        with pytest.raises(NeedsAttention, match="not entered in time"):
            await sign_in_by_device(account_at(sim), clock=PatientClock(), show=show)


async def test_a_device_code_that_nobody_enters_ends_by_our_own_clock(sim: GraphSim) -> None:
    async def show(_: DeviceCode) -> None:
        clock.advance(890)

    clock = HurriedClock()
    with pytest.raises(NeedsAttention, match="not entered in time"):
        await sign_in_by_device(account_at(sim), clock=clock, show=show)


async def test_a_browser_signs_in(sim: GraphSim, person: Person) -> None:
    found = await sign_in_by_browser(account_at(sim), open_url=person.signs_in)
    assert found.user.user_name == sim.endpoints.user_name
    assert [page.status_code for page in person.pages] == [200]
    assert DONE in person.pages[0].text
    assert person.pages[0].headers["cache-control"] == "no-store"


@pytest.mark.parametrize("tenant", ["common", "organizations"])
async def test_an_app_for_many_tenants_signs_in(sim: GraphSim, person: Person, tenant: str) -> None:
    account = account_at(sim, tenant_id=tenant)
    found = await sign_in_by_browser(account, open_url=person.signs_in)
    assert found.tenant_id == sim.endpoints.tenant_id


@pytest.mark.parametrize("tenant", ["common", "consumers"])
async def test_a_personal_account_signs_in(tenant: str) -> None:
    async with serve(state=sim_state(), profile="personal") as sim:
        found = await signed_in(sim, account_at(sim, tenant_id=tenant))
    assert found.tenant_id == CONSUMERS
    assert found.user.user_name == sim.endpoints.user_name


async def test_an_answer_with_another_state_is_not_taken(sim: GraphSim, person: Person) -> None:
    async def opens(auth_uri: str) -> None:
        url = await person.redirected(auth_uri)
        await person.visit(url.replace(f"state={state_of(auth_uri)}", "state=other"))
        await person.visit(url)

    found = await sign_in_by_browser(account_at(sim), open_url=opens)
    assert found.user.user_name == sim.endpoints.user_name
    assert [page.status_code for page in person.pages] == [400, 200]
    assert WRONG_STATE in person.pages[0].text


async def test_the_door_takes_one_answer(person: Person) -> None:
    async with listening() as door:
        door.state = "right"
        uri = door.redirect_uri
        assert (await person.visit(f"{uri}/favicon.ico")).status_code == 404
        assert NOTHING_HERE in person.pages[-1].text
        assert (await person.visit(f"{uri}/?state=right")).status_code == 400
        for host in ("evil.example", f"localhost.evil.example:{door.port}", "localhost\r\nHost: x"):
            reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
            writer.write(f"GET /?state=right&code=9 HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert (await reader.read()).startswith(b"HTTP/1.1 421 ")
            writer.close()
        assert (await person.visit(f"{uri}/?state=right&code=1")).status_code == 200
        replay = await person.visit(f"{uri}/?state=right&code=2")
        assert (replay.status_code, REPLAYED in replay.text) == (409, True)
        assert await door.answer() == {"state": "right", "code": "1"}
        reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
        writer.write(b"nonsense\r\n\r\n")
        assert await reader.read() == b""
        writer.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", door.port)


async def test_a_used_code_is_refused(sim: GraphSim, person: Person) -> None:
    used: list[str] = []

    async def first(auth_uri: str) -> None:
        used.append(await person.redirected(auth_uri))
        await person.visit(used[0])

    await sign_in_by_browser(account_at(sim), open_url=first)

    async def second(auth_uri: str) -> None:
        port = auth_uri.split("localhost%3A")[1].split("&", maxsplit=1)[0]
        code = used[0].split("code=")[1].split("&")[0]
        await person.visit(f"http://localhost:{port}/?code={code}&state={state_of(auth_uri)}")

    with pytest.raises(NeedsAttention, match="used before, or is too old"):
        await sign_in_by_browser(account_at(sim), open_url=second)


async def test_consent_refused_in_the_browser(sim: GraphSim, person: Person) -> None:
    async def refuses(auth_uri: str) -> None:
        port = auth_uri.split("localhost%3A")[1].split("&", maxsplit=1)[0]
        await person.visit(
            f"http://localhost:{port}/?error=access_denied&error_description=AADSTS65004%3A+no"
            f"&state={state_of(auth_uri)}"
        )

    with pytest.raises(NeedsAttention, match="Consent was refused") as raised:
        await sign_in_by_browser(account_at(sim), open_url=refuses)
    assert raised.value.reason is Reason.CONSENT_MISSING


async def test_a_replayed_id_token_is_not_trusted(sim: GraphSim, person: Person) -> None:
    async def with_another_nonce(auth_uri: str) -> None:
        await person.visit(await person.redirected(auth_uri, nonce="0" * 64))

    with pytest.raises(NeedsAttention, match="its nonce is another one"):
        await sign_in_by_browser(account_at(sim), open_url=with_another_nonce)


async def test_a_pasted_address_is_as_good(sim: GraphSim, person: Person) -> None:
    pastes: asyncio.Queue[str] = asyncio.Queue()
    told: list[str] = []

    async def opens(auth_uri: str) -> None:
        url = await person.redirected(auth_uri)
        pastes.put_nowait("https://example.com/")
        pastes.put_nowait(url.replace(state_of(auth_uri), "other"))
        pastes.put_nowait(f"  {url}\n")

    async def again(words: str) -> None:
        told.append(words)

    found = await sign_in_by_browser(
        account_at(sim), open_url=opens, pasted=pastes.get, again=again
    )
    assert found.user.user_name == sim.endpoints.user_name
    assert len(told) == 2
    assert told[0].startswith("This is not the address")
    assert told[1] == WRONG_STATE


async def test_somebody_else_on_reconnect_is_refused(sim: GraphSim, person: Person) -> None:
    before = await signed_in(sim)
    account = account_at(sim, sign_in=before.user)
    assert (await signed_in(sim, account)).user == before.user
    with other_person_at(sim) as other, pytest.raises(NeedsAttention) as raised:
        await sign_in_by_browser(account, open_url=person.signs_in)
    assert f"{other.name} signed in" in str(raised.value)
    assert f"belongs to {before.user.user_name}. Nothing was changed" in str(raised.value)
    assert raised.value.reason is Reason.WRONG_USER


async def test_another_tenant_is_refused(sim: GraphSim, person: Person) -> None:
    elsewhere = sim.app.entra.directory.add_tenant("elsewhere.invalid")
    account = account_at(sim, tenant_id=elsewhere)
    with pytest.raises(NeedsAttention, match=f"does not belong to tenant '{elsewhere}'") as raised:
        await sign_in_by_browser(account, open_url=person.signs_in)
    assert raised.value.reason is Reason.WRONG_USER


async def test_an_unknown_tenant_is_told(sim: GraphSim) -> None:
    nowhere = "11111111-2222-3333-4444-555555555555"
    with pytest.raises(NeedsAttention, match=f"knows no tenant '{nowhere}'") as raised:
        await signed_in(sim, account_at(sim, tenant_id=nowhere))
    assert raised.value.reason is Reason.TENANT_UNKNOWN


async def test_an_unknown_app_is_told(sim: GraphSim) -> None:
    with pytest.raises(NeedsAttention, match="does not know app 'other'") as raised:
        await signed_in(sim, account_at(sim, client_id="other"))
    assert raised.value.reason is Reason.APP_UNKNOWN


async def test_a_certificate_that_is_not_trusted_is_told(sim: GraphSim) -> None:
    with pytest.raises(PartDown, match="not trusted here"):
        await signed_in(sim, account_at(sim, ca_file=None))


async def test_a_service_that_is_not_there_is_down(sim: GraphSim) -> None:
    with pytest.raises(PartDown, match="could not be reached"):
        await signed_in(sim, account_at(sim, authority="https://127.0.0.1:9"))


async def test_http_is_refused(sim: GraphSim) -> None:
    with pytest.raises(NeedsAttention, match="only be asked to sign in over https"):
        await signed_in(sim, account_at(sim, authority=sim.endpoints.login_http_url))


async def test_a_ca_file_that_is_missing_is_told(sim: GraphSim) -> None:
    with pytest.raises(NeedsAttention, match="cannot be read"):
        await signed_in(sim, account_at(sim, ca_file="/nowhere/ca.pem"))
