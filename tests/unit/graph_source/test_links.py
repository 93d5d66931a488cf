import pytest

from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph.links import (
    check_endpoint,
    check_link,
    full_link,
    kept_link,
)

BASE = "https://graph.microsoft.com/v1.0"


@pytest.mark.parametrize(
    "link",
    [
        f"{BASE}/drives/b!x/root/delta?token=T",
        f"{BASE}/drives/b!x/root/delta(token='T')",
        "https://GRAPH.microsoft.com:443/beta/drives('d')/items('i')/microsoft.graph.delta()",
    ],
)
def test_graphs_own_links_come_back_unchanged(link: str) -> None:
    assert check_link(link, BASE) == link


@pytest.mark.parametrize(
    "link",
    [
        "https://evil.example/v1.0/delta",
        "https://graph.microsoft.com.evil.example/",
        "http://graph.microsoft.com/v1.0/delta",
        "https://graph.microsoft.com:444/v1.0/delta",
        "https://graph.microsoft.com@evil.example/",
        "https://user:pw@graph.microsoft.com/",
        "https://graph.microsoft.com\\@evil.example/",
        "https://evil.example\\.graph.microsoft.com/",
        "//evil.example/v1.0",
        "/v1.0/drives",
        "ftp://graph.microsoft.com/",
        "https://graph.microsoft.com\n.evil.example/",
        "",
        "nonsense",
    ],
)
def test_links_that_lead_elsewhere_are_refused(link: str) -> None:
    with pytest.raises(NeedsAttention) as caught:
        check_link(link, BASE)
    assert caught.value.reason is Reason.SOURCE_MISBEHAVES


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080/v1.0", "http://localhost/v1.0", BASE])
def test_endpoints_that_may_see_a_token(url: str) -> None:
    check_endpoint(url)


@pytest.mark.parametrize("url", ["http://graph.microsoft.com", "ftp://x", "", "http://10.0.0.1/"])
def test_endpoints_that_may_not(url: str) -> None:
    with pytest.raises(NeedsAttention) as caught:
        check_endpoint(url)
    assert caught.value.reason is Reason.ADDRESS_UNUSABLE


def test_a_stored_link_follows_the_endpoint_to_another_address() -> None:
    link = f"{BASE}/drives/b!1/root/delta?token=a%2Fb"
    kept = kept_link(link, BASE)
    assert full_link(kept, BASE) == link
    assert full_link(kept, "http://127.0.0.1:8/v1.0") == (
        "http://127.0.0.1:8/v1.0/drives/b!1/root/delta?token=a%2Fb"
    )


def test_a_link_that_does_not_begin_with_the_endpoint_is_stored_whole() -> None:
    for link in (f"{BASE}beta/x", BASE.replace("https", "http") + "/x"):
        assert full_link(kept_link(link, BASE), BASE) == link
