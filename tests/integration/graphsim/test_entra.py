from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
import requests
from azure.core.exceptions import ClientAuthenticationError
from azure.identity.aio import ClientSecretCredential

from graphsim.clock import ManualClock
from graphsim.serving import GraphSim, serve
from integration.graphsim.conftest import own_app

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SCOPE = "https://graph.microsoft.com/.default"
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"


@pytest.fixture
async def sim() -> AsyncIterator[GraphSim]:
    async with serve(clock=ManualClock()) as running:
        yield running


def _credential(sim: GraphSim, secret: str) -> ClientSecretCredential:
    return ClientSecretCredential(
        sim.endpoints.tenant_id,
        sim.endpoints.client_id,
        secret,
        authority=sim.endpoints.login_url,
        disable_instance_discovery=True,
        connection_verify=sim.endpoints.ca_file,
    )


async def test_azure_identity_gets_a_token_that_graph_takes() -> None:
    async with serve() as sim:
        async with _credential(sim, sim.endpoints.client_secret) as credential:
            token = (await credential.get_token(SCOPE)).token
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as client:
            url = f"{sim.endpoints.graph_url}/drives/{sim.endpoints.drive_id}/root"
            assert (await client.get(url)).json()["id"] == sim.endpoints.root_id


async def test_azure_identity_reports_a_wrong_secret(sim: GraphSim) -> None:
    async with _credential(sim, "wrong") as credential:
        with pytest.raises(ClientAuthenticationError, match="AADSTS7000215"):
            await credential.get_token(SCOPE)


def _msal_flow(sim: GraphSim) -> None:
    import msal

    session = requests.Session()
    session.trust_env = False
    session.verify = sim.endpoints.ca_file
    app = msal.ConfidentialClientApplication(
        sim.endpoints.client_id,
        client_credential=sim.endpoints.client_secret,
        authority=f"{sim.endpoints.login_url}/{sim.endpoints.tenant_id}",
        http_client=session,
        instance_discovery=False,
    )
    flow = app.initiate_auth_code_flow(["Files.Read.All"], redirect_uri="http://localhost/back")
    answer = session.get(flow["auth_uri"], allow_redirects=False)
    options = {k: v[0] for k, v in parse_qs(urlsplit(answer.headers["location"]).query).items()}
    result = app.acquire_token_by_auth_code_flow(flow, options)
    assert "access_token" in result, result
    (account,) = app.get_accounts()
    assert account["username"] == sim.endpoints.user_name
    again = app.acquire_token_silent(["Files.Read.All"], account, force_refresh=True)
    assert again is not None
    assert again["access_token"] != result["access_token"]


async def test_msal_signs_a_person_in_and_refreshes() -> None:
    import asyncio

    async with serve() as sim:
        await asyncio.to_thread(_msal_flow, sim)


async def test_the_token_endpoint_is_also_on_plain_http(sim: GraphSim) -> None:
    async with httpx.AsyncClient() as client:
        assert (await client.head(f"{sim.endpoints.login_http_url}/")).status_code == 200
        answer = await client.post(
            f"{sim.endpoints.login_http_url}/common/oauth2/v2.0/token",
            data={"grant_type": "client_credentials", "scope": ".default"},
            auth=(sim.endpoints.client_id, sim.endpoints.client_secret),
        )
    assert answer.json()["token_type"] == "Bearer"
    assert "refresh_token" not in answer.json()


@pytest.mark.parametrize(
    ("change", "error", "number"),
    [
        ({"client_secret": "wrong"}, "invalid_client", 7000215),
        ({"client_secret": ""}, "invalid_client", 7000218),
        ({"client_id": "other"}, "unauthorized_client", 700016),
        ({"grant_type": "password"}, "unsupported_grant_type", 70003),
        ({"grant_type": "refresh_token", "refresh_token": "x"}, "invalid_grant", 70000),
    ],
)
async def test_refusals_look_like_entras(
    sim: GraphSim, login: httpx.AsyncClient, change: dict[str, str], error: str, number: int
) -> None:
    form = own_app(sim, grant_type="client_credentials", scope=SCOPE) | change
    answer = await login.post("/token", data=form)
    body = answer.json()
    assert answer.status_code in {400, 401}
    assert (body["error"], body["error_codes"]) == (error, [number])
    assert body["error_description"].startswith(f"AADSTS{number}: ")


async def test_any_refusal_can_be_scripted(sim: GraphSim, login: httpx.AsyncClient) -> None:
    sim.faults.add("status", op="token", aadsts=7000222)
    form = own_app(sim, grant_type="client_credentials", scope=SCOPE)
    answer = await login.post("/token", data=form)
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
    sim.faults.add("throttle", op="token", retry_after="3")
    assert (await login.post("/token", data=form)).status_code == 429
    assert (await login.post("/token", data=form)).status_code == 200


async def test_refresh_tokens_rotate(sim: GraphSim, login: httpx.AsyncClient) -> None:
    first = sim.endpoints.refresh_token
    form = own_app(sim, grant_type="refresh_token")
    second = (await login.post("/token", data=form | {"refresh_token": first})).json()
    assert second["refresh_token"] != first
    assert (await login.post("/token", data=form | {"refresh_token": first})).status_code == 200
    sim.app.entra.directory.strict_rotation = True
    again = form | {"refresh_token": second["refresh_token"]}
    assert (await login.post("/token", data=again)).status_code == 200
    used = await login.post("/token", data=again)
    assert used.json()["error_codes"] == [70000]
    assert isinstance(sim.clock, ManualClock)
    sim.clock.advance(91 * 86400)
    old = await login.post("/token", data=form | {"refresh_token": first})
    assert old.json()["error_codes"] == [700082]


async def test_a_device_code_waits_for_the_person(sim: GraphSim, login: httpx.AsyncClient) -> None:
    started = (
        await login.post("/devicecode", data={"client_id": sim.endpoints.client_id, "scope": "x"})
    ).json()
    form = {
        "client_id": sim.endpoints.client_id,
        "grant_type": DEVICE,
        "device_code": started["device_code"],
    }
    waiting = await login.post("/token", data=form)
    assert waiting.json()["error"] == "authorization_pending"
    await login.get(started["verification_uri"], params={"user_code": started["user_code"]})
    assert "refresh_token" in (await login.post("/token", data=form)).json()
    assert (await login.post("/token", data=form)).json()["error"] == "bad_verification_code"


async def test_an_authorization_code_needs_its_verifier(
    sim: GraphSim, login: httpx.AsyncClient
) -> None:
    verifier = "v" * 50
    digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest())
    options = {
        "client_id": sim.endpoints.client_id,
        "response_type": "code",
        "redirect_uri": "http://localhost:1/back",
        "state": "s t",
        "scope": "Files.Read.All offline_access",
        "code_challenge": digest.decode().rstrip("="),
        "code_challenge_method": "S256",
    }

    async def exchange(code_verifier: str) -> httpx.Response:
        answer = await login.get("/authorize", params=options)
        back = parse_qs(urlsplit(answer.headers["location"]).query)
        assert back["state"] == ["s t"]
        form = {
            "client_id": sim.endpoints.client_id,
            "grant_type": "authorization_code",
            "code": back["code"][0],
            "redirect_uri": options["redirect_uri"],
            "code_verifier": code_verifier,
        }
        first = await login.post("/token", data=form)
        assert (await login.post("/token", data=form)).json()["error_codes"] == [70000]
        return first

    assert (await exchange(verifier)).status_code == 200
    assert (await exchange("wrong")).json()["error"] == "invalid_grant"


async def test_the_state_folder_keeps_certificates_and_tokens_good(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with serve(state=state) as sim:
        before, token = sim.endpoints, sim.access_token()
        ca = Path(before.ca_file).read_bytes()  # noqa: ASYNC240 - a few bytes
    async with serve(state=state) as sim:
        assert Path(sim.endpoints.ca_file).read_bytes() == ca  # noqa: ASYNC240 - a few bytes
        assert sim.endpoints.client_secret == before.client_secret
        url = f"{sim.endpoints.graph_url}/drives/{sim.endpoints.drive_id}/root"
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as client:
            assert (await client.get(url)).status_code == 200
