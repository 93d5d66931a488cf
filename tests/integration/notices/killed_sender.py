"""A process that tells of what is open and is killed between sending and saying so.

Run as ``killed_sender.py DATABASE_URL WEBHOOK_URL MAIL_PORT``.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from drivefeed.catalog.engine import open_catalog
from drivefeed.outward import notices_of
from drivefeed.settings import Settings
from drivefeed.system import SystemClock, SystemIds


def die_after_sending(name: str) -> None:
    """Pass every checkpoint but the one after a message was taken."""
    if name == "notice.send.after":
        os.kill(os.getpid(), signal.SIGKILL)


async def main(url: str, hook: str, port: str) -> None:
    """Look once and send."""
    channel = (
        {"name": "hook", "kind": "webhook", "url": hook}
        if hook
        else {
            "name": "mail",
            "kind": "smtp",
            "host": "127.0.0.1",
            "port": int(port),
            "tls": "none",
            "from": "feed@acme.example",
            "to": ["ops@acme.example"],
        }
    )
    catalog = await open_catalog(
        url, clock=SystemClock(), ids=SystemIds(), checkpoint=die_after_sending
    )
    await notices_of(Settings(notices=[channel]), catalog, owner="killed").tick()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
