"""A new certificate takes the place of the old sign-in once Microsoft accepts it, not before."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.secrets.certificates import Certificate, make_certificate
from drivefeed.sources.graph.account import ClientCertificate
from drivefeed.sources.graph.auth import AppCredential
from drivefeed.sources.graph.renewing import RenewingCredential
from graphsim.serving import GraphSim, serve
from graphsim.tenancy import KeyCredential
from integration.delegated.desk import Desk, serving
from integration.graph_source.kit import HurriedClock, account_of, sim_state

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def running() -> Iterator[GraphSim]:
    with serving() as sim:
        yield sim


@pytest.fixture
def desk(tmp_path: Path, running: GraphSim) -> Iterator[Desk]:
    made = Desk(tmp_path, running)
    made("init")
    yield made
    running.app.entra.directory.app.certificates.clear()


def upload(desk: Desk, certificate: str) -> None:
    desk.sim.app.entra.directory.app.certificates.append(KeyCredential(certificate.encode()))


def test_the_old_certificate_stays_until_the_new_one_is_accepted(desk: Desk) -> None:
    first = desk.json("account", "add", "app", *desk.place, "--make-certificate")
    upload(desk, first["certificate"])
    assert desk.json("account", "test", "app")["state"] == "ok"

    second = desk.json("account", "reconnect", "app", "--make-certificate")
    assert second["has_pending"]
    assert second["expires_at"] == first["expires_at"]
    offered = desk.json("account", "certificate", "app")
    assert (offered["pending"], offered["public_pem"]) == (True, second["certificate"])
    for _ in range(2):
        meanwhile = desk.json("account", "test", "app")
        assert (meanwhile["can_sign_in"], meanwhile["state"]) == (True, "ok")
        assert "Its new certificate is not accepted yet" in meanwhile["words"]
    for words in (("account", "list"), ("account", "show", "app")):
        assert "Upload it" in " ".join(desk(*words).stdout.split())
    checks = desk.json("doctor", ok=range(4))
    (warned,) = (one for one in checks if "not accepted the new certificate" in one["words"])
    assert (warned["part"], warned["colour"]) == ("expiry", "yellow")

    third = desk.json("account", "reconnect", "app", "--make-certificate")
    upload(desk, third["certificate"])
    taken = desk.json("account", "test", "app")
    assert "Microsoft took the new certificate" in taken["words"]
    (listed,) = desk.json("account", "list")
    assert (listed["has_pending"], listed["state"]) == (False, "ok")
    shown = desk.json("account", "certificate", "app")
    assert (shown["pending"], shown["public_pem"]) == (False, third["certificate"])
    assert listed["expires_at"] == shown["expires_at"]
    assert desk.rows("SELECT kind FROM credentials") == [{"kind": "certificate"}]
    del desk.sim.app.entra.directory.app.certificates[0]
    assert desk.json("account", "test", "app")["can_sign_in"]
    assert desk.anywhere("PRIVATE KEY") == []


def test_a_client_secret_stays_until_the_certificate_is_accepted(desk: Desk) -> None:
    secret = desk.sim.endpoints.client_secret
    desk("account", "add", "app", *desk.place, "--secret-stdin", typed=secret)
    made = desk.json("account", "reconnect", "app", "--make-certificate")
    assert (made["sign_in"], made["has_pending"]) == ("secret", True)
    assert desk.json("account", "test", "app")["can_sign_in"]
    upload(desk, made["certificate"])
    assert desk.json("account", "test", "app")["can_sign_in"]
    (listed,) = desk.json("account", "list")
    assert (listed["sign_in"], listed["has_pending"]) == ("certificate", False)
    assert desk.rows("SELECT kind FROM credentials") == [{"kind": "certificate"}]


def test_another_sign_in_takes_the_place_of_both(desk: Desk) -> None:
    secret = desk.sim.endpoints.client_secret
    desk("account", "add", "app", *desk.place, "--secret-stdin", typed=secret)
    desk("account", "reconnect", "app", "--make-certificate")
    desk("account", "reconnect", "app", "--secret-stdin", typed=secret)
    (listed,) = desk.json("account", "list")
    assert (listed["sign_in"], listed["has_pending"]) == ("secret", False)


def certificate(name: str) -> Certificate:
    return make_certificate(name, now=1_790_000_000_000)


async def test_a_process_that_runs_finds_the_upload_by_itself() -> None:
    clock, accepted = HurriedClock(), []
    old, new = certificate("old"), certificate("new")
    async with serve(state=sim_state()) as sim:
        registered = sim.app.entra.directory.app.certificates
        registered[:] = [KeyCredential(old.public_pem.encode())]
        account = account_of(sim, sign_in=ClientCertificate(old.pem))

        async def note() -> None:
            accepted.append(1)

        renewed = replace(account, sign_in=ClientCertificate(new.pem))
        credential = RenewingCredential(
            AppCredential(renewed, clock), AppCredential(account, clock), note
        )
        try:
            assert (await credential.get_token(account.scope)).token
            asked = sim.log.count("token")
            assert (await credential.get_token(account.scope)).token
            assert sim.log.count("token") == asked, "a refusal and a token are remembered"
            registered.append(KeyCredential(new.public_pem.encode()))
            assert accepted == []
            clock.advance(5 * 60)
            for _ in range(2):
                assert (await credential.get_token(account.scope)).token
            assert accepted == [1]
            del registered[0]
            await credential.renew(credential.generation, None)
            assert (await credential.get_token(account.scope)).token
            registered.clear()
            await credential.renew(credential.generation, None)
            with pytest.raises(NeedsAttention) as caught:
                await credential.get_token(account.scope)
            assert caught.value.reason is Reason.CERTIFICATE_UNKNOWN
        finally:
            await credential.close()
