"""A great many calls to one endpoint on loopback, over a few connections.

The requests are written as they are, since an HTTP client would take longer than what it calls.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any
from urllib.parse import urlsplit

AT_ONCE = 16
SECONDS = 600


async def flood(url: str, content: Any, calls: int) -> Counter[int]:
    """Post the same so many times; return how often each status was answered."""
    parts = urlsplit(url)
    body = json.dumps(content).encode()
    request = (
        f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body
    left = iter(range(calls))
    statuses: Counter[int] = Counter()

    async def some() -> None:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        try:
            # The iterator is shared: whoever is free takes the next one.
            for _ in left:
                writer.write(request)
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                statuses[int(head.split(" ")[1])] += 1
                length = head.partition("content-length: ")[2].partition("\r\n")[0]
                await reader.readexactly(int(length or 0))
        finally:
            writer.close()

    async with asyncio.timeout(SECONDS):
        await asyncio.gather(*(some() for _ in range(AT_ONCE)))
    return statuses
