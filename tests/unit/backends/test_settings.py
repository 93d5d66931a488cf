"""Sections of backends in the settings: what cannot work is refused at the start."""

from __future__ import annotations

from typing import Any

import pytest

from drivefeed.domain.errors import NeedsAttention
from drivefeed.settings import load_settings

SECRET = "a-secret-of-the-tests-4711"
CONNECTION = {"account": "a", "drive_id": "b!1", "backend": "acme"}


def load(connections: tuple[dict[str, str], ...] = (), **section: Any) -> Any:
    acme = {"url": "https://backend.example/x", "secret": SECRET, **section}
    return load_settings(backends={"acme": acme}, connections=list(connections))


def test_a_connection_may_name_a_backend_that_there_is() -> None:
    settings = load((CONNECTION,))
    assert settings.connections[0].policy["backend"] == "acme"
    assert SECRET not in repr(settings)
    with pytest.raises(NeedsAttention, match=r"there is no \[backends.other\]"):
        load(({**CONNECTION, "backend": "other"},))


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"url": "ftp://backend.example"}, "backends.acme.url"),
        ({"url": "https://backend.example/?a=b"}, "backends.acme.url"),
        ({"secret": "short"}, "at least 16 characters"),
        ({"auth": "none"}, "backends.acme.auth"),
        ({"auth": "bearer", "url": "http://backend.example"}, "without TLS"),
        ({"calls": True}, "no web_url"),
    ],
)
def test_what_cannot_work_is_refused_and_says_why(section: dict[str, Any], words: str) -> None:
    with pytest.raises(NeedsAttention, match=words) as refused:
        load(**section)
    assert SECRET not in str(refused.value)


def test_a_bearer_secret_may_stay_on_this_machine() -> None:
    assert load(auth="bearer", url="http://127.0.0.1:8771").backends["acme"].auth == "bearer"


def test_our_own_name_is_taken() -> None:
    acme = {"url": "https://backend.example", "secret": SECRET}
    with pytest.raises(NeedsAttention, match="name of our own"):
        load_settings(backends={"embedded": acme})
