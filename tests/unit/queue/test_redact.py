from __future__ import annotations

import pytest

from drivefeed.domain.redact import hide, redact

SECRET = "s3cr3t-V4lue.of+a/kind"
TOKEN = "eyJ0eXAiOiJKV1Qi.eyJhdWQiOiIwMDAw.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    "text",
    [
        f"GET https://x.sharepoint.com/_layouts/15/download.aspx?UniqueId=1&tempauth={SECRET}&a=1",
        f"https://s3/bucket/key?X-Amz-Credential=AK/2026&X-Amz-Signature={SECRET}",
        f"https://acc.blob.core/x?sv=1&amp;sig={SECRET}",
        f"Authorization: Bearer {SECRET}",
        f"{{'Authorization': 'Bearer {SECRET}'}}",
        f'{{"refresh_token": "{SECRET}", "x": 1}}',
        f"client_secret={SECRET}&grant_type=client_credentials",
        f"password = '{SECRET}'",
        f"redis://:{SECRET.replace('/', '-')}@host:6379/0",
        f"postgresql+asyncpg://user:{SECRET.replace('/', '-')}@db/drivefeed",
        f"https://public.dm.files.1drv.com/y4m{SECRET}/file.pdf",
        f"code={TOKEN}",
        f"the token {TOKEN} is expired",
        f"aws_secret_access_key={SECRET}",
    ],
)
def test_secrets_go(text: str) -> None:
    clean = redact(text)
    assert SECRET not in clean
    assert SECRET.replace("/", "-") not in clean
    assert TOKEN not in clean
    assert "***" in clean


@pytest.mark.parametrize(
    "text",
    [
        "the token expired",
        "HTTP status code: 404",
        "returncode=3",
        "GET https://graph.microsoft.com/v1.0/drives/b!x/root/delta?$top=200 gave 503",
        "redis://host:6379/0",
        "basic trouble with the design of a password",
        "File 'a.py', line 3, in run",
    ],
)
def test_the_rest_stays(text: str) -> None:
    assert redact(text) == text


def test_it_says_what_was_there() -> None:
    assert redact(f"https://h/d?tempauth={SECRET}&a=1") == "https://h/d?tempauth=***&a=1"
    assert redact("redis://u:pw@h:1") == "redis://u:***@h:1"


def test_twice_is_the_same_as_once() -> None:
    once = redact(f"Bearer {SECRET} https://u:p@h/?sig={SECRET}")
    assert redact(once) == once


@pytest.mark.parametrize("kind", ["df", "dl", "ds"])
def test_our_own_keys_go_and_their_beginning_stays(kind: str) -> None:
    key = f"{kind}_0123abcd_{'aB3-_' * 9}"
    for text in (f"GET /sign-in/once?link={key}", f"Cookie: drivefeed_8765={key}; a=b", key):
        assert "aB3" not in redact(text)
    assert redact(f"the key {key}.") == f"the key {kind}_0123abcd_***."


def test_a_value_that_was_opened_is_masked_wherever_it_stands() -> None:
    hide("nobody-would-know-this-one", "a/b+c defghij", "short")
    assert redact("said nobody-would-know-this-one to all") == "said *** to all"
    assert redact("?x=a%2Fb%2Bc%20defghij") == "?x=***"
    hide("password", "Changeme", "LETMEINPLEASE")
    for words in ("a short word", "no password", "Changeme", "LETMEINPLEASE now"):
        assert redact(words) == words


def test_of_a_private_key_nothing_is_left() -> None:
    begin, end = (f"-----{word} {'PRIVATE'} KEY-----" for word in ("BEGIN", "END"))
    pem = f"{begin}\n{'A' * 64}\n{'B' * 64}\n{end}"
    assert redact(f"key {pem} refused") == "key *** refused"
    assert redact(f"key {pem!r} refused") == "key '***' refused"
    assert redact(f"key {pem[:100]}") == "key ***"
    hide(pem)
    assert redact(f"line {'B' * 64} of it") == "line *** of it"


def test_the_address_of_a_webhook_is_one() -> None:
    assert redact("https://hooks.slack.com/services/T0/B0/x") == "https://hooks.slack.com/***"
