"""From which hosts files are fetched, and which redirects lead nowhere."""

from __future__ import annotations

import httpx
import pytest

from drivefeed.domain.errors import NeedsAttention, Transient
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph.download_hosts import download_url

BASE = "https://graph.microsoft.com/v1.0"
ASKED = httpx.URL(f"{BASE}/drives/d/items/i/content")


def test_a_download_url_keeps_its_query_and_loses_user_and_password() -> None:
    location = "https://u:p@t.sharepoint.com/download.aspx?tempauth=a%2Fb"
    url = download_url(location, ASKED, base_url=BASE)
    assert str(url) == "https://t.sharepoint.com/download.aspx?tempauth=a%2Fb"


@pytest.mark.parametrize(
    "host",
    [
        "contoso-my.sharepoint.com",
        "CONTOSO.SharePoint.com",
        "contoso.sharepoint.us",
        "public.bn1301.files.1drv.com",
        "my.microsoftpersonalcontent.com",
        "westeurope1-mediap.svc.ms",
        "graph.microsoft.com",
    ],
)
def test_hosts_that_were_seen_to_send_files(host: str) -> None:
    url = download_url(f"https://{host}/download.aspx?tempauth=SECRET", ASKED, base_url=BASE)
    assert url.host == host.lower()


@pytest.mark.parametrize(
    "location",
    [
        "https://evil.example/?tempauth=SECRET",
        "https://sharepoint.com.evil.example/?tempauth=SECRET",
        "https://evilsharepoint.com/?tempauth=SECRET",
        "https://169.254.169.254/latest/meta-data?tempauth=SECRET",
        "https://localhost/?tempauth=SECRET",
        "http://127.0.0.1:8765/?tempauth=SECRET",
        "https://contoso.sharepoint.com@evil.example/?tempauth=SECRET",
    ],
)
def test_other_hosts_are_not_asked_and_a_person_is(location: str) -> None:
    with pytest.raises(NeedsAttention) as caught:
        download_url(location, ASKED, base_url=BASE)
    assert caught.value.reason is Reason.SOURCE_MISBEHAVES
    assert "SECRET" not in str(caught.value)
    assert "outbound.download_hosts" in str(caught.value)


def test_hosts_of_the_settings_may_send_files_and_those_below_them() -> None:
    more = ("files.example", ".cdn.example")
    for host in ("files.example", "eu.files.example", "cdn.example", "a.cdn.example"):
        assert download_url(f"https://{host}/x", ASKED, base_url=BASE, more=more).host == host
    with pytest.raises(NeedsAttention):
        download_url("https://otherfiles.example/x", ASKED, base_url=BASE, more=more)


def test_a_look_alike_on_this_machine_sends_files_from_this_machine() -> None:
    base = "http://127.0.0.1:8080/v1.0"
    url = download_url("http://localhost:1/x", httpx.URL(base), base_url=base)
    assert url.host == "localhost"


def test_a_look_alike_elsewhere_sends_files_itself() -> None:
    base = "https://graphsim.internal:8443/v1.0"
    url = download_url("/download/x", httpx.URL(f"{base}/drives"), base_url=base)
    assert str(url) == "https://graphsim.internal:8443/download/x"


@pytest.mark.parametrize(
    "location", [None, "", "http://evil.example/?tempauth=SECRET", "file:///etc/passwd"]
)
def test_download_urls_that_are_none(location: str | None) -> None:
    with pytest.raises(Transient) as caught:
        download_url(location, ASKED, base_url=BASE)
    assert "SECRET" not in str(caught.value)
