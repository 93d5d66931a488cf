"""A process that refreshes a person's tokens again and again, and dies where it is told to.

    python rotating.py JOB SEED

JOB is a JSON file: the catalog, its key, the account, and how often to die where.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from pathlib import Path
from typing import Any

import httpx

from drivefeed.catalog.engine import open_catalog, sqlite_url
from drivefeed.domain.errors import Transient
from drivefeed.secrets.places import GivenKeys
from drivefeed.secrets.ring import KeyRing
from drivefeed.services.token_store import CatalogTokenStore
from drivefeed.sources.graph.account import GraphAccount, SignedInUser
from drivefeed.sources.graph.delegated import DelegatedCredential
from drivefeed.system import SystemClock, SystemIds

LONGEST_SECONDS = 1200


class Fate:
    """Kills the process, as a machine that goes down would, at places drawn by lot."""

    def __init__(self, seed: int, chance: float, spared: list[str]) -> None:
        self._lots = random.Random(seed)
        self._chance = chance
        self._spared = set(spared)
        self.armed = False

    def __call__(self, name: str) -> None:
        if self.armed and name not in self._spared and self._lots.random() < self._chance:
            os.kill(os.getpid(), signal.SIGKILL)


async def main(job: dict[str, Any], seed: int) -> None:
    fate = Fate(seed, job["chance"], job["spared"])
    catalog = await open_catalog(
        sqlite_url(Path(job["catalog"])),
        clock=SystemClock(),
        ids=SystemIds(),
        checkpoint=fate,
    )
    store = CatalogTokenStore(catalog, KeyRing(GivenKeys(job["key"])), turn_ms=job["turn_ms"])
    account = GraphAccount(
        **job["account"], sign_in=SignedInUser(job["home_account_id"], "somebody")
    )
    credential = DelegatedCredential(account, store, clock=SystemClock(), checkpoint=fate)
    done = Path(job["done"])
    async with httpx.AsyncClient() as graph, asyncio.timeout(LONGEST_SECONDS):
        while not done.exists():  # noqa: ASYNC240 - one look at a local file
            try:
                token = await credential.get_token()
            except Transient:
                # The lease may be somebody else's for a while.
                await asyncio.sleep(0.05)
                continue
            headers = {"Authorization": f"Bearer {token.token}"}
            answer = await graph.get(job["probe"], headers=headers)
            # A token may end on its way, and only then is it refused.
            assert answer.status_code in {200, 401}, answer.text
            fate.armed = True
            await credential.renew(credential.generation, None)
    await credential.close()
    await catalog.aclose()


if __name__ == "__main__":
    asyncio.run(main(json.loads(Path(sys.argv[1]).read_text()), int(sys.argv[2])))
