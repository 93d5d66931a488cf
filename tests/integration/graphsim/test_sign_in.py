from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.identity.aio import (
    CertificateCredential,
    WorkloadIdentityCredential,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from graphsim.clock import ManualClock
from graphsim.serving import GraphSim, serve
from graphsim.tenancy import Federation, KeyCredential, Secret
from integration.graphsim.conftest import own_app

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

SCOPE = "https://graph.microsoft.com/.default"
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"


@pytest.fixture
async def sim() -> AsyncIterator[GraphSim]:
    async with serve(clock=ManualClock()) as running:
        yield running


def _certificate(days: int = 30) -> tuple[bytes, bytes]:
    """Make a key with a certificate; return all of it, and the public part."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "drivefeed")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=days))
        .sign(key, hashes.SHA256())
    )
    public = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return private + public, public


async def test_a_certificate_signs_in_as_long_as_it_is_registered_and_valid() -> None:
    pem, public = _certificate()
    clock = ManualClock(time.time())
    async with serve(clock=clock) as sim:
        ends = sim.endpoints

        async def token() -> str:
            async with CertificateCredential(
                ends.tenant_id, ends.client_id, certificate_data=pem, authority=ends.login_url,
                disable_instance_discovery=True, connection_verify=ends.ca_file,
            ) as credential:  # fmt: skip
                return (await credential.get_token(SCOPE)).token

        with pytest.raises(ClientAuthenticationError, match="AADSTS700027"):
            await token()
        sim.directory.app.certificates.append(KeyCredential(public))
        claims = json.loads(base64.urlsafe_b64decode((await token()).split(".")[1] + "=="))
        assert claims["roles"] == ["Files.Read.All", "Sites.Read.All"]
        assert sim.log.entries(op="token")[-1].flow == "client_credentials"
        sim.skew = 3600
        with pytest.raises(ClientAuthenticationError, match="AADSTS700024"):
            await token()
        sim.skew = 0
        sim.directory.app.certificates[0].expires = clock.now()
        with pytest.raises(ClientAuthenticationError, match="key used is expired"):
            await token()


async def test_an_assertion_is_taken_once_and_for_this_address_only(
    sim: GraphSim, login: httpx.AsyncClient
) -> None:
    import jwt

    pem, public = _certificate()
    sim.directory.app.certificates.append(KeyCredential(public))
    der = x509.load_pem_x509_certificate(public).public_bytes(serialization.Encoding.DER)
    print_ = base64.urlsafe_b64encode(hashlib.sha256(der).digest()).decode().rstrip("=")
    now, own = sim.clock.now(), sim.endpoints.client_id

    async def refusal(**changes: object) -> list[int]:
        audience = f"{sim.endpoints.login_url}/{sim.endpoints.tenant_id}/v2.0"
        claims = {"aud": audience, "iss": own, "sub": own, "jti": "1", "nbf": now, "exp": now + 300}
        key = serialization.load_pem_private_key(pem, None)
        assert isinstance(key, rsa.RSAPrivateKey)
        signed = jwt.encode(claims | changes, key, "PS256", {"x5t#S256": print_})
        form = {
            "client_id": own, "grant_type": "client_credentials", "scope": SCOPE,
            "client_assertion": signed,
            "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        }  # fmt: skip
        answer = (await login.post("/token", data=form)).json()
        return list(answer.get("error_codes", []))

    assert await refusal() == []
    assert await refusal() == [700027]
    assert await refusal(jti="2", aud="https://elsewhere.invalid") == [700023]
    assert await refusal(jti="3", sub="another app") == [700021]
    assert await refusal(jti="4", exp=now - 900) == [700024]
    assert await refusal(jti="5", nbf=now + 900) == [700024]


async def test_a_token_of_a_registered_issuer_signs_in(tmp_path: Path) -> None:
    async with serve() as sim:
        issuer, ends = sim.add_issuer(), sim.endpoints
        sim.directory.app.federations.append(Federation(issuer.url, "system:drivefeed"))
        file = tmp_path / "token"

        async def token(subject: str, **more: str) -> str:
            file.write_text(issuer.token(subject, **more))  # type: ignore[arg-type]
            async with WorkloadIdentityCredential(
                tenant_id=ends.tenant_id, client_id=ends.client_id, token_file_path=str(file),
                authority=ends.login_url, disable_instance_discovery=True,
                connection_verify=ends.ca_file,
            ) as credential:  # fmt: skip
                return (await credential.get_token(SCOPE)).token

        assert await token("system:drivefeed")
        with pytest.raises(ClientAuthenticationError, match="AADSTS700213"):
            await token("system:other")
        with pytest.raises(ClientAuthenticationError, match="AADSTS700212"):
            await token("system:drivefeed", audience="another")
        sim.directory.app.federations.clear()
        with pytest.raises(ClientAuthenticationError, match="AADSTS700211"):
            await token("system:drivefeed")


async def test_secrets_expire_on_the_virtual_clock(sim: GraphSim, login: httpx.AsyncClient) -> None:
    form = own_app(sim, grant_type="client_credentials", scope=SCOPE)
    sim.directory.app.secrets[0].expires = sim.clock.now() + 60
    assert (await login.post("/token", data=form)).status_code == 200
    assert isinstance(sim.clock, ManualClock)
    sim.clock.advance(60)
    assert (await login.post("/token", data=form)).json()["error_codes"] == [7000222]
    sim.directory.app.secrets.append(Secret("second"))
    assert (await login.post("/token", data=form | {"client_secret": "second"})).is_success


async def test_unknown_tenants_and_blocked_people_are_refused(
    sim: GraphSim, login: httpx.AsyncClient
) -> None:
    form = own_app(sim, grant_type="refresh_token", refresh_token=sim.endpoints.refresh_token)
    url = f"{sim.endpoints.login_url}/nowhere.invalid/oauth2/v2.0/token"
    assert (await login.post(url, data=form)).json()["error_codes"] == [90002]
    sim.directory.person.blocked = 53003
    body = (await login.post("/token", data=form)).json()
    assert (body["error"], body["suberror"]) == ("interaction_required", "message_only")
    sim.directory.person.blocked = None
    sim.directory.app.scopes = {"Files.Read"}
    assert (await login.post("/token", data=form)).json()["error_codes"] == [65001]
    sim.directory.app.scopes = None
    sim.app.entra.grants.revoke_refresh_tokens(sim.directory.person)
    assert (await login.post("/token", data=form)).json()["error_codes"] == [50173]


async def test_faults_by_flow_and_person(sim: GraphSim, login: httpx.AsyncClient) -> None:
    ada = sim.add_person("ada@graphsim.invalid")
    token = sim.app.entra.grants.refresh_token(person=ada)
    sim.faults.add("status", op="token", aadsts=50076, user=ada.name, count=-1)
    sim.faults.add("status", op="token", aadsts=7000222, flow="client_credentials", count=-1)
    own = own_app(sim, grant_type="refresh_token")
    mine = await login.post("/token", data=own | {"refresh_token": sim.endpoints.refresh_token})
    hers = await login.post("/token", data=own | {"refresh_token": token})
    app = await login.post("/token", data=own_app(sim, grant_type="client_credentials"))
    assert [one.status_code for one in (mine, hers, app)] == [200, 400, 401]
    assert hers.json()["error_codes"] == [50076]


async def test_a_used_refresh_token_is_logged_in_strict_rotation(
    sim: GraphSim, login: httpx.AsyncClient
) -> None:
    sim.directory.strict_rotation = True
    form = own_app(sim, grant_type="refresh_token", refresh_token=sim.endpoints.refresh_token)
    assert (await login.post("/token", data=form)).is_success
    assert not (await login.post("/token", data=form)).is_success
    async with httpx.AsyncClient(base_url=sim.endpoints.admin_url) as admin:
        seen = (await admin.get("/tokens")).json()
    assert seen["refreshes"] == 1
    assert [one["user"] for one in seen["reused"]] == [sim.endpoints.user_name]


async def test_the_person_at_the_browser_may_decline_or_be_another(
    sim: GraphSim, login: httpx.AsyncClient
) -> None:
    ada = sim.add_person("ada@graphsim.invalid")
    eve = sim.add_person("eve@x.invalid", tenant_id=sim.directory.add_tenant("x.invalid"))
    options = {
        "client_id": sim.endpoints.client_id, "redirect_uri": "http://localhost:1/back",
        "state": "s", "scope": "openid Files.Read.All",
    }  # fmt: skip

    async def back(**more: str) -> dict[str, str]:
        answer = await login.get("/authorize", params=options | more)
        return {k: v[0] for k, v in parse_qs(urlsplit(answer.headers["location"]).query).items()}

    declined = await back(answer="decline")
    assert (declined["error"], declined["state"]) == ("access_denied", "s")
    assert "AADSTS50020" in (await back(user=eve.name))["error_description"]
    sim.faults.add("status", op="authorize", aadsts=53003)
    assert "AADSTS53003" in (await back())["error_description"]
    sim.directory.browser.user = ada.name
    code = (await back())["code"]
    form = own_app(sim, grant_type="authorization_code", code=code, client_info="1")
    answer = (await login.post("/token", data=form)).json()
    info = json.loads(base64.urlsafe_b64decode(answer["client_info"] + "=="))
    assert info == {"uid": ada.id, "utid": ada.tenant_id}
    sim.directory.browser.answer = "ask"
    page = await login.get("/authorize", params=options)
    assert "Continue as ada@graphsim.invalid" in page.text
    posted = await login.get(
        "/authorize", params=options | {"answer": "accept", "response_mode": "form_post"}
    )
    assert 'name="code"' in posted.text


async def test_device_codes_may_be_declined_or_die_early(
    sim: GraphSim, login: httpx.AsyncClient
) -> None:
    own = {"client_id": sim.endpoints.client_id}

    async def start() -> tuple[dict[str, str], dict[str, str]]:
        started = (await login.post("/devicecode", data=own | {"scope": "Files.Read"})).json()
        return started, own | {"grant_type": DEVICE, "device_code": started["device_code"]}

    started, form = await start()
    asked = {"user_code": started["user_code"], "answer": "decline"}
    await login.get(started["verification_uri"], params=asked)
    assert (await login.post("/token", data=form)).json()["error"] == "authorization_declined"
    started, form = await start()
    asked = {"user_code": started["user_code"]}
    sim.directory.browser.answer = "ask"
    page = (await login.get(started["verification_uri"], params=asked)).text
    assert "answer=decline" in page
    assert "Files.Read" in page
    sim.directory.browser.answer = "decline"
    await login.get(started["verification_uri"], params=asked)
    sim.directory.browser.answer = "accept"
    assert (await login.post("/token", data=form)).json()["error"] == "authorization_declined"
    started, form = await start()
    sim.add_person("eve@x.invalid", tenant_id=sim.directory.add_tenant("x.invalid"))
    asked = {"user_code": started["user_code"], "user": "eve@x.invalid"}
    assert (await login.get(started["verification_uri"], params=asked)).status_code == 400
    assert (await login.post("/token", data=form)).json()["error_codes"] == [50020]
    sim.directory.device_dies_after = 300
    started, form = await start()
    assert started["expires_in"] == 900
    assert isinstance(sim.clock, ManualClock)
    sim.clock.advance(301)
    answered = await login.get(
        started["verification_uri"], params={"user_code": started["user_code"]}
    )
    assert answered.status_code == 404
    assert (await login.post("/token", data=form)).json()["error"] == "expired_token"


async def test_a_personal_account_has_opaque_tokens() -> None:
    async with serve(profile="personal") as sim, httpx.AsyncClient() as client:
        form = own_app(sim, grant_type="refresh_token", refresh_token=sim.endpoints.refresh_token)
        url = f"{sim.endpoints.login_http_url}/consumers/oauth2/v2.0/token"
        token = (await client.post(url, data=form)).json()["access_token"]
        assert token.startswith("EwB")
        headers = {"Authorization": f"Bearer {token}"}
        drive = await client.get(f"{sim.endpoints.graph_url}/me/drive", headers=headers)
        assert drive.json()["driveType"] == "personal"


async def test_the_date_is_the_services_own(sim: GraphSim) -> None:
    sim.skew = 600
    async with httpx.AsyncClient() as client:
        answer = await client.get(f"{sim.endpoints.graph_url}/me")
    date = parsedate_to_datetime(answer.headers["date"]).timestamp()
    assert date - sim.clock.now() == 600


async def test_the_admin_port_changes_the_directory(sim: GraphSim) -> None:
    async with httpx.AsyncClient(base_url=sim.endpoints.admin_url) as admin:
        made = (await admin.post("/sites", json={"name": "Legal", "files": {"a.txt": "x"}})).json()
        assert made["web_url"].endswith("/sites/Legal")
        person = (
            await admin.post("/people", json={"name": "b@x.invalid", "onedrive": False})
        ).json()
        assert person["drive_id"] is None
        app = (await admin.post("/apps", json={"name": "a", "roles": ["Sites.Selected"]})).json()
        change = {"secrets": [{"value": "s", "expires": 1.0}], "scopes": ["Files.Read"]}
        await admin.patch(f"/apps/{app['client_id']}", json=change)
        await admin.post("/sites/Legal/grants", json={"client_id": app["client_id"]})
        knobs = {"token_lifetime": 60, "strict_rotation": True, "clock_skew": 5.0}
        await admin.patch("/directory", json=knobs | {"browser": {"answer": "decline"}})
        refused = await admin.post("/sites/Nowhere/grants", json={"client_id": "x"})
        assert refused.status_code == 400
    known = sim.directory.apps[app["client_id"]]
    assert (known.roles, known.scopes) == ({"Sites.Selected"}, {"Files.Read"})
    assert known.secrets[0].expires == 1.0
    assert sim.estate.site(made["id"]).grants(app["client_id"])
    assert (sim.directory.token_lifetime, sim.skew) == (60, 5.0)
    assert sim.directory.browser.answer == "decline"
