"""People's sign-ins that nobody uses are used once a week: Entra forgets them after 90 days.

So a connection may stay paused for half a year, and needs nobody when it goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.catalog.credentials import untouched_tokens
from drivefeed.domain.errors import DrivefeedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from drivefeed.catalog.engine import Catalog
    from drivefeed.sources.graph.account import GraphAccount
    from drivefeed.sources.graph.auth import Credential

IDLE_MS = 7 * 24 * 3_600_000
LOOK_EVERY_SECONDS = 3_600.0


async def refresh_idle_sign_ins(
    catalog: Catalog,
    accounts: Mapping[str, GraphAccount],
    credential: Callable[[GraphAccount], Credential],
) -> list[str]:
    """Refresh the tokens of people that were not refreshed for a week; return whose were.

    One that is refused has its account's state by then; one that cannot be tried now is tried at
    the next look.
    """
    done = []
    for account_id in await untouched_tokens(catalog, since=catalog.clock.now() - IDLE_MS):
        account = accounts.get(account_id)
        if account is None or not account.is_delegated:
            continue
        one = credential(account)
        try:
            await one.get_token(account.scope)
        except DrivefeedError:
            continue
        finally:
            await one.close()
        done.append(account.name)
    return done
