"""Every client that leaves this machine goes through the proxy, and trusts the CA file.

The names end in ``.example``, which resolve nowhere: what arrives came through the proxy.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from drivefeed.domain.errors import DrivefeedError, PartDown
from drivefeed.domain.remote import DriveRef
from drivefeed.indexer.vectors.server import ServerIndex
from drivefeed.outbound import Outbound
from drivefeed.sources.graph.auth import AppCredential
from drivefeed.stores.s3 import S3Store
from drivefeed.tracing import configure_tracing, span, stop_tracing
from graphsim.serving import serve
from integration.graph_source.kit import HurriedClock, PlainIds, account_of, content, crawl
from support.authority import Authority
from support.proxy import Proxy, running_proxy, tls_front
from support.receiver import running_receiver
from support.seaweed import BUCKET, new_prefix

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from drivefeed.sources.graph.account import GraphAccount
    from support.seaweed import SeaweedServer

LOGIN, GRAPH, FILES = "login.example", "graph.example", "files.example"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    made = Authority(tmp_path_factory.mktemp("authority") / "tls")
    # graphsim keeps a certificate of these names in its state folder, and takes this one for it.
    made.issue(LOGIN, GRAPH, FILES, "localhost", "127.0.0.1")
    return made


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    async with running_proxy() as running:
        yield running


@pytest.fixture
def outbound(proxy: Proxy, authority: Authority, tmp_path: Path) -> Outbound:
    return Outbound().changed(
        http_proxy=proxy.url,
        https_proxy=proxy.url,
        ca_file=str(authority.ca),
        folder=tmp_path / "trust",
    )


def credential(account: GraphAccount) -> AppCredential:
    """Return the app's own sign-in, the way out being that of the account."""

    return AppCredential(account, HurriedClock())


@asynccontextmanager
async def tenant(
    authority: Authority, folder: Path, outbound: Outbound
) -> AsyncIterator[tuple[Any, GraphAccount]]:
    """A simulator that is known by names of its own, and an account there."""
    folder.mkdir()  # noqa: ASYNC240 - a folder of a test
    (folder / "plan.txt").write_text("The plan of the year.")
    async with serve(folder, state=authority.folder.parent) as sim:
        port = httpx.URL(sim.endpoints.login_url).port
        sim.app.downloads._host = f"{FILES}:{port}"
        account = account_of(
            sim,
            authority=f"https://{LOGIN}:{port}",
            graph_url=f"https://{GRAPH}:{port}",
            ca_file=None,
            outbound=outbound.changed(download_hosts=(FILES,)),
        )
        yield sim, account


async def test_sign_in_graph_and_downloads_go_through_the_proxy(
    authority: Authority, proxy: Proxy, outbound: Outbound, tmp_path: Path
) -> None:
    from drivefeed.sources.graph import GraphSource

    async with tenant(authority, tmp_path / "drive", outbound) as (sim, account):
        source = GraphSource(
            {"sim": account}, clock=HurriedClock(), ids=PlainIds(), credential=credential
        )
        drive = DriveRef("sim", sim.drive.id)
        found, _ = await crawl(source, drive)
        plan = next(item for item in found.values() if item.name == "plan.txt")
        assert await content(source, drive, plan.item_id) == b"The plan of the year."
        await source.aclose()
    assert proxy.hosts == {LOGIN, GRAPH, FILES}
    assert all(one.startswith("CONNECT ") for one in proxy.asked)


async def test_msal_signs_in_through_the_proxy(
    authority: Authority, proxy: Proxy, outbound: Outbound, tmp_path: Path
) -> None:
    import msal

    async with tenant(authority, tmp_path / "drive", outbound) as (sim, account):

        def sign_in() -> dict[str, Any]:
            app = msal.ConfidentialClientApplication(
                account.client_id,
                client_credential=sim.endpoints.client_secret,
                authority=f"{account.login_url}/{account.tenant_id}",
                instance_discovery=False,
                http_client=outbound.session(account.login_url, account.ca_file),
            )
            return dict(app.acquire_token_for_client([account.scope]))

        answer = await asyncio.to_thread(sign_in)
    assert "access_token" in answer, answer
    assert proxy.hosts == {LOGIN}


async def test_without_the_ca_file_nothing_is_trusted(
    authority: Authority, proxy: Proxy, tmp_path: Path
) -> None:
    bare = Outbound().changed(https_proxy=proxy.url)
    async with tenant(authority, tmp_path / "drive", bare) as (_, account):
        signing = credential(account)
        with pytest.raises(PartDown, match="could not be reached"):
            await signing.get_token(account.scope)
        await signing.close()
        client = httpx.AsyncClient(transport=bare.transport())
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await client.get(account.base_url)
        await client.aclose()


async def test_s3_goes_through_the_proxy_by_tls_and_plainly(
    authority: Authority, proxy: Proxy, outbound: Outbound, seaweed: SeaweedServer
) -> None:
    plain = int(seaweed.endpoint_url.rpartition(":")[2])
    async with tls_front(plain, authority.server_context("s3.example")) as secure:
        for url in (f"http://s3.example:{plain}", f"https://s3.example:{secure}"):
            settings = seaweed.settings | {"endpoint_url": url}
            store = S3Store(BUCKET, prefix=new_prefix(), outbound=outbound, **settings)
            await store.ensure_bucket()
            await store.check()
            await store.aclose()
    assert f"CONNECT s3.example:{secure}" in proxy.asked
    assert any(one.endswith(f" s3.example:{plain}") for one in proxy.asked)


async def test_the_vector_index_goes_through_the_proxy(
    authority: Authority, proxy: Proxy, outbound: Outbound
) -> None:
    with running_receiver(authority.server_context("qdrant.example")) as server:
        server.answer = (503, {}, b"{}")
        index = ServerIndex(
            server.at("qdrant.example"), model_name="model", dimension=3, outbound=outbound
        )
        with pytest.raises(DrivefeedError):
            await index.check()
        await index.aclose()
        assert server.received
    assert set(proxy.asked) == {f"CONNECT qdrant.example:{server.port}"}


async def test_spans_go_through_the_proxy(
    authority: Authority, proxy: Proxy, outbound: Outbound, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_receiver(authority.server_context("otel.example")) as server:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.at("otel.example"))
        assert configure_tracing(outbound)
        with span("a step"):
            pass
        await asyncio.to_thread(stop_tracing)
    assert [one.path for one in server.received] == ["/v1/traces"]
    assert proxy.asked == [f"CONNECT otel.example:{server.port}"]


async def test_a_proxy_may_ask_for_a_password(
    authority: Authority, tmp_path: Path, seaweed: SeaweedServer
) -> None:
    async with running_proxy("me:word") as proxy:
        outbound = Outbound().changed(
            http_proxy=proxy.url, ca_file=str(authority.ca), folder=tmp_path, https_proxy=proxy.url
        )
        async with tenant(authority, tmp_path / "drive", outbound) as (_, account):
            signing = credential(account)
            assert (await signing.get_token(account.scope)).token
            await signing.close()
        assert proxy.hosts == {LOGIN}
        port = seaweed.endpoint_url.rpartition(":")[2]
        settings = seaweed.settings | {"endpoint_url": f"http://s3.example:{port}"}
        store = S3Store(BUCKET, prefix=new_prefix(), outbound=outbound, **settings)
        await store.ensure_bucket()
        await store.aclose()
        assert proxy.hosts == {LOGIN, "s3.example"}
        proxy.asked.clear()
        with running_receiver(authority.server_context("hook.example")) as server:
            url = server.at("hook.example")
            async with httpx.AsyncClient(transport=outbound.transport()) as client:
                assert (await client.get(url)).status_code == 200
            session = outbound.session(url)
            assert (await asyncio.to_thread(session.get, url)).status_code == 200
    assert proxy.asked == [f"CONNECT hook.example:{server.port}"] * 2


async def test_no_proxy_and_this_machine_are_reached_directly(
    authority: Authority,
    proxy: Proxy,
    outbound: Outbound,
    seaweed: SeaweedServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # What libraries would take from the environment by themselves does not count.
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, proxy.url)
    store = S3Store(BUCKET, prefix=new_prefix(), outbound=outbound, **seaweed.settings)
    await store.ensure_bucket()
    await store.check()
    await store.aclose()
    with running_receiver(authority.server_context("127.0.0.1")) as server:
        async with httpx.AsyncClient(transport=outbound.transport()) as client:
            assert (await client.get(server.url)).status_code == 200
        session = outbound.session(server.url)
        assert (await asyncio.to_thread(session.get, server.url)).status_code == 200
    direct = outbound.changed(no_proxy=".example")
    async with httpx.AsyncClient(transport=direct.transport()) as client:
        with pytest.raises(httpx.ConnectError):
            await client.get("https://graph.example/")
    assert proxy.asked == []
    assert os.environ["HTTPS_PROXY"]
