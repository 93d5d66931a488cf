"""Requests for tokens: whom they trust is loaded once, and their session ends."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Any

import pytest
from azure.core.exceptions import ServiceRequestError

from drivefeed.sources.graph.credentials import app_credential
from integration.graph_source.kit import account_of

if TYPE_CHECKING:
    from graphsim.serving import GraphSim

TOKENS = 3
FRESH = '{"access_token": {"xms_cc": {"values": ["cp1"]}}}'
"""Claims, with which azure-identity takes no token that it has."""


async def test_authorities_are_not_loaded_for_each_token(
    sim: GraphSim, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[Any] = []
    load = ssl.create_default_context
    account = account_of(sim)
    assert account.ca_file
    async with await asyncio.to_thread(app_credential, account) as credential:
        monkeypatch.setattr(
            ssl, "create_default_context", lambda **of: loaded.append(of) or load(**of)
        )
        found = [
            await credential.get_token(f"{account.graph_url}/.default", claims=FRESH)
            for _ in range(TOKENS)
        ]
    assert len({one.token for one in found}) == TOKENS
    assert loaded == []


async def test_whoever_is_not_trusted_gets_no_secret(sim: GraphSim) -> None:
    stranger = account_of(sim, ca_file=None)
    async with await asyncio.to_thread(app_credential, stranger) as credential:
        with pytest.raises(ServiceRequestError, match="certificate verify failed"):
            await credential.get_token(f"{stranger.graph_url}/.default")
