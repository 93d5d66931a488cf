"""Microsoft's own client library, unchanged, against graphsim."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from azure.identity.aio import ClientSecretCredential
from kiota_authentication_azure.azure_identity_authentication_provider import (
    AzureIdentityAuthenticationProvider,
)
from msgraph import GraphServiceClient
from msgraph.generated.models.o_data_errors.o_data_error import ODataError
from msgraph.graph_request_adapter import GraphRequestAdapter

from graphsim.serving import serve

if TYPE_CHECKING:
    from pathlib import Path


async def test_the_sdk_reads_a_drive(tmp_path: Path) -> None:
    folder = tmp_path / "served"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "it's 100%.txt").write_text("hello")
    async with (
        serve(folder, state=tmp_path / "state") as sim,
        ClientSecretCredential(
            sim.endpoints.tenant_id,
            sim.endpoints.client_id,
            sim.endpoints.client_secret,
            authority=sim.endpoints.login_url,
            disable_instance_discovery=True,
            connection_verify=sim.endpoints.ca_file,
        ) as credential,
    ):
        provider = AzureIdentityAuthenticationProvider(
            credential,
            scopes=["https://graph.microsoft.com/.default"],
            allowed_hosts=["127.0.0.1"],
        )
        adapter = GraphRequestAdapter(provider)
        adapter.base_url = sim.endpoints.graph_url
        drive = GraphServiceClient(request_adapter=adapter).drives.by_drive_id(
            sim.endpoints.drive_id
        )
        root = drive.items.by_drive_item_id("root")

        page = await root.delta.get()
        assert [item.name for item in page.value] == ["root", "sub", "it's 100%.txt"]
        file = page.value[2]
        assert await drive.items.by_drive_item_id(file.id).content.get() == b"hello"
        (folder / "sub" / "it's 100%.txt").unlink()
        await sim.drive.refresh(at_once=True)
        page = await root.delta.with_url(page.odata_delta_link).get()
        assert [item.id for item in page.value if item.deleted] == [file.id]
        with pytest.raises(ODataError) as refused:
            await drive.items.by_drive_item_id(file.id).get()
        assert refused.value.error.code == "itemNotFound"
        assert sim.log.leaked_authorization() == []
