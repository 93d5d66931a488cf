"""Whether this machine's clock agrees with the sign-in service's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.services.checkups.finding import Colour
from drivefeed.services.checkups.network import clock_finding
from drivefeed.services.checkups.reach import reach

if TYPE_CHECKING:
    from drivefeed.ports import Clock
    from drivefeed.sources.graph.account import GraphAccount


async def clock_words(account: GraphAccount, clock: Clock) -> str:
    """Return a sentence where the clock is off so far that people should know; else nothing."""
    got = await reach(account.login_url, account.outbound, clock, ca_file=account.ca_file)
    if got.ahead_ms is None:
        return ""
    found = clock_finding(got.host, got.ahead_ms)
    return "" if found.colour is Colour.GREEN else f"{found.words} {found.remedy}"
