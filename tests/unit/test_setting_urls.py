"""Addresses in settings: what cannot be one is told at once, and never repeated."""

from __future__ import annotations

import pytest

from drivefeed.domain.errors import NeedsAttention
from drivefeed.settings import load_settings

SECRET = "Zq8Q~vX2canary"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("127.0.0.1:6379", "begins with redis://"),
        ("nonsense", "begins with redis://"),
        ("http://127.0.0.1:6379", "begins with redis://"),
        ("redis://", "names no host"),
        ("redis://127.0.0.1:99999/0", "port is a number"),
        ("redis://127.0.0.1:0/0", "port is a number"),
        ("redis://127.0.0.1:six/0", "port is a number"),
        (f"redis://:{SECRET}/more@127.0.0.1:6379", "written as %23"),
        (f"redis://:{SECRET}#more@127.0.0.1:6379", "written as %23"),
        (f"redis://127.0.0.1:6379/{SECRET}", "the number of a database"),
        (f"redis://[{SECRET}", "port is a number"),
    ],
)
@pytest.mark.parametrize("variable", ["DRIVEFEED_REDIS_URL", "REDIS_URL"])
def test_what_is_no_address_of_a_redis_is_refused(
    monkeypatch: pytest.MonkeyPatch, variable: str, url: str, words: str
) -> None:
    monkeypatch.setenv(variable, url)
    with pytest.raises(NeedsAttention) as refused:
        load_settings()
    assert words in str(refused.value)
    assert "DRIVEFEED_REDIS_URL: " in str(refused.value)
    assert SECRET[:6] not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "redis://127.0.0.1",
        "redis://127.0.0.1:6379/0",
        "rediss://user:p%23ss%2F@cache.example:6380/3?ssl_cert_reqs=required",
        "redis://[::1]:6379",
        "unix:///run/redis.sock?db=2",
        "unix://user:word@/run/redis.sock",
        "",
    ],
)
def test_what_redis_takes_is_taken(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("DRIVEFEED_REDIS_URL", url)
    found = load_settings().redis_url
    assert (found.get_secret_value() if found else "") == url


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("nonsense", "begins with http://"),
        ("qdrant:6333", "begins with http://"),
        ("http://", "names no host"),
        ("https://qdrant.example:70000", "port is a number"),
    ],
)
def test_what_is_no_address_of_an_index_is_refused(
    monkeypatch: pytest.MonkeyPatch, url: str, words: str
) -> None:
    monkeypatch.setenv("DRIVEFEED_QDRANT_URL", url)
    with pytest.raises(NeedsAttention, match=words):
        load_settings()


@pytest.mark.parametrize("table", ["EMBEDDING", "OUTBOUND", "CONNECTIONS"])
def test_a_table_that_is_no_json_is_told_by_its_variable(
    monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    monkeypatch.setenv(f"DRIVEFEED_{table}", SECRET)
    with pytest.raises(NeedsAttention) as refused:
        load_settings()
    assert f"The variable DRIVEFEED_{table} cannot be read" in str(refused.value)
    assert SECRET[:6] not in str(refused.value)
