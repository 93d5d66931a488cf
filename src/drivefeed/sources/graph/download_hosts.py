"""From which hosts files are fetched: Graph names one for each file, and not every one is believed.

No credential goes there. But a host that nobody knows could have any bytes indexed as a file of
the organization, and one inside of a network could be asked for what is nobody's business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin

import httpx

from drivefeed.domain.errors import NeedsAttention, Transient
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph.links import is_loopback

if TYPE_CHECKING:
    from collections.abc import Collection

MICROSOFTS: Final = (
    "sharepoint.com",
    "sharepoint.us",
    "sharepoint-mil.us",
    "dps.mil",
    "sharepoint.cn",
    "svc.ms",
    "1drv.com",
    "microsoftpersonalcontent.com",
    "livefilestore.com",
    "onedrive.com",
    "live.com",
    "live.net",
)
"""Each with all hosts below it. Those of SharePoint, of ``svc.ms``, ``1drv.com`` and
``microsoftpersonalcontent.com`` were seen in redirects by users of other clients; the others are
where OneDrive kept files before. Microsoft publishes no list of its own."""


def download_url(
    location: str | None, asked: httpx.URL, *, base_url: str, more: Collection[str] = ()
) -> httpx.URL:
    """Read the ``Location`` of a download redirect.

    Args:
        location: the header; a relative one is resolved against ``asked``.
        asked: the URL that answered with the redirect.
        base_url: the Graph endpoint; its own host may send files, and one on this machine may
            send them from this machine.
        more: further hosts from which files may come, each with all below it.

    Raises:
        Transient: there is none, or it is neither https nor on this machine.
        NeedsAttention: nobody said that files come from there; it was not asked.

    No message repeats the URL, because it opens the file to anybody who has it.
    """
    if not location:
        raise Transient("Microsoft Graph redirected a download without saying where to.")
    try:
        url = httpx.URL(urljoin(str(asked), location))
    except (httpx.InvalidURL, ValueError) as error:
        raise Transient("Microsoft Graph redirected a download to something not a URL.") from error
    if not url.host or not (url.scheme == "https" or is_loopback(url.host)):
        raise Transient(
            f"Microsoft Graph redirected a download to {url.scheme}://{url.host}, which is not "
            "https; it was not followed."
        )
    if not _sends_files(url.host.lower().rstrip("."), httpx.URL(base_url).host.lower(), more):
        raise NeedsAttention(
            f"Microsoft Graph redirected a download to {url.host}, which is not known to send "
            "files of OneDrive and SharePoint. It was not asked. If it is Microsoft's, add it to "
            "outbound.download_hosts, and retry the file.",
            reason=Reason.SOURCE_MISBEHAVES,
        )
    return url.copy_with(userinfo=b"")


def _sends_files(host: str, graph: str, more: Collection[str]) -> bool:
    if host == graph or (is_loopback(host) and is_loopback(graph)):
        return True
    known = (*MICROSOFTS, *(one.lower().strip(".") for one in more))
    return any(host == one or host.endswith(f".{one}") for one in known)
