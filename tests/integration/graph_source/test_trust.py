"""What we tell to whom: tokens, cookies, logs; and what we believe."""

from __future__ import annotations

import asyncio
import gzip
import logging
from typing import TYPE_CHECKING

import pytest

from drivefeed import __version__
from drivefeed.domain.errors import NeedsAttention, Permanent, Transient
from drivefeed.domain.reasons import Reason
from integration.graph_source.kit import content
from integration.graph_source.scripted import (
    DRIVE,
    Answer,
    Asked,
    FixedCredential,
    Server,
    json_answer,
    reading,
    refusal,
    scripted,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def page(link: str, kind: str = "nextLink") -> Answer:
    return json_answer({"value": [{"id": "1", "file": {}}], f"@odata.{kind}": link})


def redirecting(server: Server, location: str, host: Callable[[Asked], Answer]) -> None:
    def script(asked: Asked) -> Answer:
        if asked.target.endswith("/content"):
            return 302, {"Location": location}, b""
        return host(asked)

    server.script = script


async def test_a_link_to_another_host_is_refused_and_nobody_there_hears_of_us() -> None:
    async with scripted() as graph, scripted() as evil, reading(graph) as source:
        graph.script = lambda _: page(f"{evil.url}/v1.0/drives/b!drive/root/delta?token=x")
        with pytest.raises(NeedsAttention) as caught:
            await source.delta(DRIVE, None)
        assert caught.value.reason is Reason.SOURCE_MISBEHAVES
        for stored in (f"{evil.url}/delta", f"http://127.0.0.1:{graph.port}@127.0.0.1:{evil.port}"):
            with pytest.raises(NeedsAttention):
                await source.delta(DRIVE, stored)
        assert evil.asked == []
        assert len(graph.asked) == 1


async def test_links_are_followed_as_they_are_written() -> None:
    links = [
        "/v1.0/drives('b!drive')/items('root')/microsoft.graph.delta(token='aBc-_.~%2E%2f+x')",
        "/v1.0/drives/b!drive/root/delta?token=MzslMjM0OyUyMzE7Mw%3D%3D&$select=id%2Cname&$top=7",
        "/v1.0/drives/b!drive/root/delta?(token='1230919asd190410jlka')",
        "/v1.0/drives/b%21drive/root/delta?%24skiptoken=a%24b&%2Dx=1&users=/me-token-to-replace",
    ]
    async with scripted() as graph, reading(graph) as source:
        graph.script = lambda _: page(f"{graph.url}/v1.0/x", "deltaLink")
        for link in links:
            await source.delta(DRIVE, graph.url + link)
        assert [asked.target for asked in graph.asked] == links


async def test_who_we_say_we_are_and_what_we_ask_for() -> None:
    async with scripted() as graph, reading(graph) as source:
        graph.script = lambda _: page(f"{graph.url}/v1.0/x", "deltaLink")
        await source.delta(DRIVE, None)
        await source.delta(DRIVE, f"{graph.url}/v1.0/x")
        first, second = graph.asked
        options = dict(one.split("=") for one in first.target.split("?")[1].split("&"))
        assert "deleted" in options["$select"].split(",")
        assert "$top" not in options
        for asked in (first, second):
            assert asked.headers["user-agent"] == f"NONISV|drivefeed|drivefeed/{__version__}"
            assert asked.headers["authorization"] == "Bearer token-0"
            assert asked.headers["prefer"] == "Include-Feature=AddToOneDrive"
        ids = [asked.headers["client-request-id"] for asked in graph.asked]
        assert len(set(ids)) == 2


async def test_the_download_host_sees_no_token_no_cookie_and_no_referer() -> None:
    async with scripted() as graph, reading(graph) as source:
        redirecting(
            graph,
            f"{graph.other_url}/download?tempauth=SECRET",
            lambda _: (200, {"Set-Cookie": "FedAuth=1; Path=/"}, b"hello"),
        )
        for _ in range(2):
            assert await content(source, DRIVE, "1") == b"hello"
        for asked in graph.asked_for("/download"):
            assert not {"authorization", "cookie", "referer"} & set(asked.headers)
            assert asked.headers["accept-encoding"] == "identity"


async def test_a_redirect_back_to_graphs_own_host_carries_no_token_either() -> None:
    async with scripted() as graph, reading(graph) as source:
        redirecting(graph, "/download?tempauth=SECRET", lambda _: (200, {}, b"hello"))
        assert await content(source, DRIVE, "1") == b"hello"
        assert "authorization" not in graph.asked_for("/download")[0].headers


async def test_download_urls_and_tokens_are_in_no_log_and_no_message(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    async with scripted() as graph, reading(graph) as source:
        redirecting(
            graph, f"{graph.other_url}/d?tempauth=SECRET", lambda _: refusal(401, "unauthenticated")
        )
        with pytest.raises(Transient) as caught:
            await content(source, DRIVE, "1")
        error: BaseException | None = caught.value
        while error is not None:
            assert "SECRET" not in str(error)
            error = error.__cause__ or error.__context__
    assert "SECRET" not in caplog.text
    assert "token-0" not in caplog.text


@pytest.mark.parametrize("location", ["http://203.0.113.7/d?tempauth=SECRET", "file:///etc/passwd"])
async def test_a_download_from_a_place_without_https_is_not_begun(location: str) -> None:
    async with scripted() as graph, reading(graph) as source:
        redirecting(graph, location, lambda _: (200, {}, b"hello"))
        with pytest.raises(Transient, match="not https"):
            await content(source, DRIVE, "1")


async def test_the_host_may_redirect_further_but_not_for_ever() -> None:
    async with scripted() as graph, reading(graph) as source:

        def host(asked: Asked) -> Answer:
            if asked.target == "/hop/1":
                return 307, {"Location": "/hop/2"}, b""
            return 200, {}, b"hello"

        redirecting(graph, f"{graph.other_url}/hop/1", host)
        assert await content(source, DRIVE, "1") == b"hello"
        redirecting(graph, f"{graph.other_url}/l", lambda _: (302, {"Location": "/l"}, b""))
        with pytest.raises(Transient, match="too often"):
            await content(source, DRIVE, "1")


async def test_a_redirected_metadata_request_is_not_followed() -> None:
    async with scripted() as graph, scripted() as evil, reading(graph) as source:
        graph.script = lambda _: (302, {"Location": f"{evil.url}/x"}, b"")
        with pytest.raises(Transient, match="redirected"):
            await source.delta(DRIVE, None)
        assert evil.asked == []


async def test_a_challenge_is_answered_once_however_many_requests_met_it() -> None:
    credential = FixedCredential()
    async with scripted() as graph, reading(graph, credential) as source:

        def script(asked: Asked) -> Answer:
            if asked.headers["authorization"] == "Bearer token-0":
                challenge = 'Bearer realm="", error="insufficient_claims", claims="eyJ4IjoxfQ=="'
                return refusal(401, "InvalidAuthenticationToken", WWW_Authenticate=challenge)
            return page(f"{graph.url}/v1.0/x", "deltaLink")

        graph.script = script
        await asyncio.gather(*(source.delta(DRIVE, None) for _ in range(8)))
        assert credential.claims == ["eyJ4IjoxfQ=="]


async def test_a_token_that_stays_refused_asks_a_person_after_two_requests() -> None:
    async with scripted() as graph, reading(graph) as source:
        graph.script = lambda _: refusal(401, "InvalidAuthenticationToken")
        with pytest.raises(NeedsAttention) as caught:
            await source.delta(DRIVE, None)
        assert caught.value.reason is Reason.NEEDS_SIGN_IN
        assert len(graph.asked) == 2


async def test_a_body_that_was_compressed_all_the_same_is_unpacked_and_resumed() -> None:
    plain = bytes(range(256)) * 4000
    packed = gzip.compress(plain, 1, mtime=0)
    async with scripted() as graph, reading(graph) as source:
        headers = {"Content-Encoding": "gzip", "ETag": '"1"', "Content-Length": str(len(packed))}
        answers = iter([packed[: len(packed) // 2], packed])
        redirecting(graph, f"{graph.other_url}/file", lambda _: (200, headers, next(answers)))
        assert await content(source, DRIVE, "1") == plain
        assert all("range" not in asked.headers for asked in graph.asked_for("/file"))


@pytest.mark.parametrize(
    ("second", "complaint"),
    [
        ((206, {"Content-Range": "bytes 4-9/10", "ETag": '"2"'}, b"efghij"), "changed"),
        ((206, {"Content-Range": "bytes 4-11/12", "ETag": '"1"'}, b"efghijkl"), "changed"),
        ((200, {"ETag": '"2"'}, b"ABCDEFGHIJ"), "changed"),
        ((200, {}, b"ABCDEFGHIJ"), "changed"),
        ((416, {"Content-Range": "bytes */3"}, b""), "changed"),
        ((206, {"Content-Range": "bytes 0-9/10", "ETag": '"1"'}, b"abcdefghij"), "another part"),
        ((206, {"Content-Range": "nonsense", "ETag": '"1"'}, b"efghij"), "without saying which"),
        ((206, {"ETag": '"1"'}, b"efghij"), "without saying which"),
    ],
)
async def test_nothing_is_appended_that_does_not_belong_there(
    second: Answer, complaint: str
) -> None:
    async with scripted() as graph, reading(graph) as source:
        answers = iter([(200, {"Content-Length": "10", "ETag": '"1"'}, b"abcd"), *[second] * 9])
        redirecting(graph, f"{graph.other_url}/file", lambda _: next(answers))
        with pytest.raises(Transient, match=complaint):
            await content(source, DRIVE, "1")
        resumed = graph.asked_for("/file")[1].headers
        assert (resumed["range"], resumed["if-range"]) == ("bytes=4-", '"1"')


@pytest.mark.parametrize(
    "second",
    [
        (206, {"Content-Range": "bytes 4-9/10", "ETag": '"1"'}, b"efghij"),
        (206, {"Content-Range": "bytes 4-9/*", "ETag": '"1"'}, b"efghij"),
        (206, {"Content-Range": "bytes 4-9/10"}, b"efghij"),
        (200, {"ETag": '"1"'}, b"abcdefghij"),
    ],
)
async def test_what_does_belong_there_is_appended(second: Answer) -> None:
    async with scripted() as graph, reading(graph) as source:
        answers = iter([(200, {"Content-Length": "10", "ETag": '"1"'}, b"abcd"), second])
        redirecting(graph, f"{graph.other_url}/file", lambda _: next(answers))
        assert await content(source, DRIVE, "1") == b"abcdefghij"


async def test_parts_shorter_than_asked_for_are_put_together() -> None:
    text = b"abcdefghij"

    def host(asked: Asked) -> Answer:
        at = int(asked.headers.get("range", "bytes=0-")[6:-1])
        part = text[at : at + 3]
        if at == 0:
            return 200, {"Content-Length": "10", "ETag": '"1"'}, part
        return 206, {"Content-Range": f"bytes {at}-{at + 2}/10", "ETag": '"1"'}, part

    async with scripted() as graph, reading(graph) as source:
        redirecting(graph, f"{graph.other_url}/file", host)
        assert await content(source, DRIVE, "1") == text


async def test_malware_on_the_download_host_is_for_good() -> None:
    async with scripted() as graph, reading(graph) as source:
        redirecting(
            graph,
            f"{graph.other_url}/file",
            lambda _: (403, {"X-Virus-Infected": "Eicar"}, b"<html>Virus</html>"),
        )
        with pytest.raises(Permanent) as caught:
            await content(source, DRIVE, "1")
        assert caught.value.reason is Reason.MALWARE
        assert len(graph.asked_for("/file")) == 1


@pytest.mark.parametrize("body", [b"<html>Sign in to the hotel network</html>", b"", b"[1,2]"])
async def test_a_page_that_is_none_is_tried_again_later(body: bytes) -> None:
    async with scripted() as graph, reading(graph) as source:
        graph.script = lambda _: (200, {"Content-Type": "text/html"}, body)
        with pytest.raises(Transient):
            await source.delta(DRIVE, None)


async def test_a_page_cut_short_is_tried_again_later() -> None:
    async with scripted() as graph, reading(graph) as source:
        graph.script = lambda _: (200, {"Content-Length": "5000"}, b'{"value":[')
        with pytest.raises(Transient):
            await source.delta(DRIVE, None)


async def test_microsofts_request_id_is_in_the_message() -> None:
    async with scripted() as graph, reading(graph) as source:
        graph.script = lambda _: refusal(500, "generalException", request_id="f00-ba7")
        with pytest.raises(Transient, match="f00-ba7"):
            await source.delta(DRIVE, None)
