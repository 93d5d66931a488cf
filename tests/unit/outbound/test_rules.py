"""Which way a URL goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from drivefeed.domain.errors import NeedsAttention
from drivefeed.outbound import Outbound
from drivefeed.secrets.certificates import make_certificate

PROXY = "http://proxy.example:3128"

PRIVATE_KEY = "PRIVATE KEY"  # put together below: no file holds the beginning of one


def through(no_proxy: str = "") -> Outbound:
    return Outbound().changed(http_proxy=PROXY, https_proxy=PROXY, no_proxy=no_proxy)


@pytest.mark.parametrize(
    ("url", "no_proxy", "way"),
    [
        ("https://graph.microsoft.com/v1.0", "", PROXY),
        ("https://graph.microsoft.com/v1.0", "microsoft.com", None),
        ("https://graph.microsoft.com/v1.0", ".microsoft.com", None),
        ("https://graph.microsoft.com/v1.0", "*.microsoft.com", None),
        ("https://graph.microsoft.com/v1.0", "soft.com", PROXY),
        ("https://GRAPH.microsoft.com./v1.0", "graph.Microsoft.com", None),
        ("https://graph.microsoft.com/v1.0", "graph.microsoft.com:443", None),
        ("https://graph.microsoft.com/v1.0", "graph.microsoft.com:8443", PROXY),
        ("http://10.1.2.3:6333", "10.0.0.0/8, other.example", None),
        ("http://10.1.2.3:6333", "10.1.2.4", PROXY),
        ("http://[fd00::7]:6333", "fd00::/8", None),
        ("https://anything.example", "*", None),
    ],
)
def test_no_proxy_names_hosts_and_all_below_them(url: str, no_proxy: str, way: str | None) -> None:
    assert through(no_proxy).proxy_for(url) == way


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST", "demo.localhost", "127.0.0.1", "127.8.9.10", "[::1]"]
)
def test_this_machine_is_never_reached_through_a_proxy(host: str) -> None:
    assert through().proxy_for(f"http://{host}:8000/") is None


def test_the_environment_is_read_in_both_spellings_and_settings_win() -> None:
    found = Outbound.from_environment(
        {"HTTPS_PROXY": "secure.example:1", "ALL_PROXY": PROXY, "no_proxy": "a.example"}
    )
    assert found.https_proxy == "http://secure.example:1"
    assert found.http_proxy == PROXY
    changed = found.changed(https_proxy="http://mine.example:2", no_proxy="b.example")
    assert changed.proxy_for("https://a.example") == "http://mine.example:2"
    assert changed.proxy_for("https://b.example") is None
    assert changed.http_proxy == PROXY


def test_a_password_of_a_proxy_is_in_no_representation() -> None:
    found = Outbound().changed(https_proxy="http://me:hidden-word@proxy.example:3128")
    assert "hidden-word" not in repr(found)


@pytest.mark.parametrize("proxy", ["socks5://proxy.example", "http://", "http://a:b:c"])
def test_a_proxy_that_cannot_be_used_is_said_without_its_password(proxy: str) -> None:
    with pytest.raises(NeedsAttention, match="has to be a URL"):
        Outbound().changed(https_proxy=proxy)


def test_a_bundle_holds_the_usual_authorities_and_ours(tmp_path: Path) -> None:
    ours, theirs = (make_certificate(name, now=0) for name in ("ours", "theirs"))
    (tmp_path / "ours.pem").write_text(f"subject=ours\n{ours.pem}")
    (tmp_path / "account.pem").write_text(theirs.public_pem)
    outbound = Outbound().changed(ca_file=str(tmp_path / "ours.pem"), folder=tmp_path / "trust")
    path = outbound.trusted(str(tmp_path / "account.pem"))
    assert path is not None
    text = Path(path).read_text()
    assert text.count("BEGIN CERTIFICATE") > 50
    assert text.endswith(f"{ours.public_pem}\n{theirs.public_pem}")
    assert "PRIVATE" not in text
    assert "subject" not in text
    assert outbound.trusted(str(tmp_path / "account.pem")) == path
    assert Outbound().trusted() is None


def test_a_ca_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NeedsAttention, match=r"missing\.pem"):
        Outbound().changed(ca_file=str(tmp_path / "missing.pem"))


@pytest.mark.parametrize(
    "content",
    [
        "hunter2",
        "",
        "-----BEGIN CERTIFICATE-----\nhunter2\n-----END CERTIFICATE-----\n",
        f"-----BEGIN {PRIVATE_KEY}-----\nAAAA\n-----END {PRIVATE_KEY}-----\n",
    ],
)
def test_a_file_without_certificates_is_refused_by_name_and_copied_nowhere(
    tmp_path: Path, content: str
) -> None:
    (tmp_path / "secret.txt").write_text(content)
    given = str(tmp_path / "secret.txt")
    for use in (
        lambda: Outbound().changed(ca_file=given),
        lambda: Outbound(folder=tmp_path / "trust").trusted(given),
        lambda: Outbound().tls(given),
    ):
        with pytest.raises(NeedsAttention, match=r"secret\.txt") as refused:
            use()
        assert "hunter2" not in str(refused.value)
    assert not (tmp_path / "trust").exists()
