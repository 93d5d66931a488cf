from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import httpx
import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from graphsim.serving import GraphSim


@pytest.fixture
async def login(sim: GraphSim) -> AsyncIterator[httpx.AsyncClient]:
    """The sign-in endpoints of the tenant, over https."""
    context = ssl.create_default_context(cafile=sim.endpoints.ca_file)
    base = f"{sim.endpoints.login_url}/{sim.endpoints.tenant_id}/oauth2/v2.0"
    async with httpx.AsyncClient(verify=context, base_url=base) as made:
        yield made


def own_app(sim: GraphSim, **more: str) -> dict[str, str]:
    """Return a form in which the tenant's app signs in by its secret."""
    own = {"client_id": sim.endpoints.client_id, "client_secret": sim.endpoints.client_secret}
    return own | more
