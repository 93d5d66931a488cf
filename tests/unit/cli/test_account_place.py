"""What is refused where an account's app and tenant are named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import typer

from drivefeed.cli.account_change import Place
from drivefeed.domain.errors import NeedsAttention
from drivefeed.settings import load_settings

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "xyz8Q~" + "a" * 34
APP = "11111111-2222-3333-4444-555555555555"


def columns(tenant: str | None, client: str = APP, ca_file: Path | None = None) -> dict[str, str]:
    place = Place(
        tenant_id=tenant,
        client_id=client,
        cloud="global",
        authority=None,
        graph_url=None,
        ca_file=ca_file,
    )
    return place.columns(is_personal=tenant is None)


@pytest.mark.parametrize(
    "tenant", [APP, "contoso.onmicrosoft.com", "xn--bcher-kva.example", "organizations", None]
)
def test_tenants_by_all_their_names(tenant: str | None) -> None:
    assert columns(f" {tenant} " if tenant else None)["tenant_id"] == (tenant or "common")


@pytest.mark.parametrize(
    ("tenant", "client"),
    [(SECRET, APP), ("harbour", APP), ("a b.example", APP), (APP, SECRET), (APP, "my app")],
)
def test_a_secret_in_place_of_an_id_is_refused_and_not_repeated(tenant: str, client: str) -> None:
    with pytest.raises(typer.BadParameter) as refused:
        columns(tenant, client)
    assert tenant == APP or tenant not in str(refused.value)
    assert client == APP or client not in str(refused.value)


def test_a_ca_file_without_certificates_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("hunter2")
    with pytest.raises(NeedsAttention, match=r"secret\.txt"):
        columns(APP, ca_file=tmp_path / "secret.txt")


@pytest.mark.parametrize("field", ["name", "org", "tenant_id", "client_id"])
def test_settings_take_no_secret_for_a_name_either(field: str) -> None:
    account = {"name": "a", "tenant_id": "t", "client_id": "c", "client_secret": SECRET}
    load_settings(accounts=[account])
    with pytest.raises(NeedsAttention, match=rf"{field}.*looks like a secret") as refused:
        load_settings(accounts=[account | {field: SECRET}])
    assert SECRET not in str(refused.value)
