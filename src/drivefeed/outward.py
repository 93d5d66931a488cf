"""What leaves this machine, made from the settings: the way out, and the channels of notices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.domain.notices import Severity, Subscription
from drivefeed.outbound import Outbound

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from drivefeed.catalog.engine import Catalog
    from drivefeed.ports import Clock
    from drivefeed.services.notices import Channel, Notices
    from drivefeed.settings import Settings


def outbound_of(settings: Settings) -> Outbound:
    """Return the way out of this machine: the settings, and the environment where they are empty.

    Raises:
        NeedsAttention: a proxy or the CA file cannot be used.
    """
    wanted = settings.outbound
    return Outbound.from_environment().changed(
        http_proxy=wanted.http_proxy.get_secret_value() if wanted.http_proxy else "",
        https_proxy=wanted.https_proxy.get_secret_value() if wanted.https_proxy else "",
        no_proxy=wanted.no_proxy,
        ca_file=str(wanted.ca_file) if wanted.ca_file else None,
        folder=settings.data_dir / "trust",
        company=wanted.company,
        download_hosts=tuple(wanted.download_hosts),
    )


def open_channels(settings: Settings, clock: Clock) -> list[Channel]:
    """Return the channels of the settings to which notices go; nothing is connected yet."""
    # mail and HTTP are loaded where somebody wants to be told
    if not settings.notices:
        return []
    from drivefeed.notices.smtp import MailChannel, MailServer
    from drivefeed.notices.webhooks import WRITERS, WebhookChannel

    outbound = outbound_of(settings)
    found: list[Channel] = []
    for one in settings.notices:
        subscription = Subscription(
            channel=one.name,
            severity=Severity(one.severity),
            orgs=frozenset(one.orgs),
            digest_ms=int(one.digest_minutes * 60_000),
        )
        if one.kind == "smtp":
            password = one.password.get_secret_value() if one.password else ""
            server = MailServer(one.host, one.port, one.tls, one.user, password)
            found.append(
                MailChannel(
                    subscription, server, sender=one.sender, to=tuple(one.to), outbound=outbound
                )
            )
        else:
            found.append(
                WebhookChannel(
                    subscription,
                    one.url.get_secret_value() if one.url else "",
                    write=WRITERS[one.kind],
                    secret=one.secret.get_secret_value() if one.secret else None,
                    outbound=outbound,
                    clock=clock,
                )
            )
    return found


def notices_of(
    settings: Settings,
    catalog: Catalog,
    owner: str,
    open_parts: Callable[[], Mapping[str, str]] = dict,
) -> Notices:
    """Return what looks for trouble and tells of it, with the channels of the settings.

    Args:
        owner: names this process.
        open_parts: parts that it finds down, with the last words about each.
    """
    from drivefeed.services.connection_troubles import Rules
    from drivefeed.services.notices import Notices

    watch = settings.watch
    return Notices(
        catalog,
        open_channels(settings, catalog.clock),
        owner=owner,
        rules=Rules(
            missed_rounds=watch.missed_rounds,
            failed_percent=watch.failed_percent,
            failed_floor=watch.failed_floor,
            idle_ms=int(watch.idle_hours * 3_600_000),
            down_ms=int(watch.down_minutes * 60_000),
            throttled_ms=int(watch.throttled_minutes * 60_000),
        ),
        look_ms=int(watch.look_seconds * 1000),
        open_parts=open_parts,
    )
