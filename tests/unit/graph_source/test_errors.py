import itertools
import json

import httpx
import pytest

from drivefeed.domain.errors import (
    CursorExpired,
    DrivefeedError,
    InUse,
    NeedsAttention,
    NotFound,
    Part,
    PartDown,
    Permanent,
    Throttled,
    Transient,
)
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph.errors import Refusal, Scene, broken, refusal_of, translate

DELTA = (Scene.ENUMERATE, Scene.CHANGES)
METADATA = (*DELTA, Scene.DRIVE, Scene.ITEM)
CODES = [
    "accessDenied",
    "activityLimitReached",
    "generalException",
    "invalidRange",
    "invalidRequest",
    "itemNotFound",
    "malwareDetected",
    "nameAlreadyExists",
    "notAllowed",
    "notSupported",
    "resourceModified",
    "resyncRequired",
    "serviceNotAvailable",
    "quotaLimitReached",
    "unauthenticated",
    "cannotSnapshotTree",
    "resourceLocked",
    "resyncChangesApplyDifferences",
    "SyncStateNotFound",
    "InvalidAuthenticationToken",
    "neverHeardOf",
]


def said(status: int, *codes: str, scene: Scene, told: float | None = None) -> DrivefeedError:
    refusal = Refusal(status, tuple(code.lower() for code in codes), "Sorry", "req-1", told)
    return translate(refusal, scene)


def outcome(error: DrivefeedError) -> tuple[type, Reason | None]:
    return type(error), getattr(error, "reason", None)


def test_every_status_with_every_code_in_every_scene_has_an_answer() -> None:
    allowed = {CursorExpired, InUse, NeedsAttention, NotFound, Permanent, Throttled, Transient}
    for status, code, scene in itertools.product(range(300, 600), (*CODES, ""), Scene):
        error = said(status, *([code] if code else []), scene=scene)
        assert type(error) in allowed
        assert str(status) in str(error)
        assert "req-1" in str(error)
        if isinstance(error, Permanent):
            assert scene in {Scene.CONTENT, Scene.HOST}, "metadata never condemns a file"
        if isinstance(error, NotFound):
            assert scene in {Scene.ITEM, Scene.CONTENT, Scene.SUBSCRIPTION}
        if isinstance(error, CursorExpired):
            assert scene in DELTA


@pytest.mark.parametrize("scene", DELTA)
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (410, ""),
        (410, "resyncRequired"),
        (410, "neverHeardOf"),
        (400, "ResyncRequired"),
        (409, "resyncChangesApplyDifferences"),
        (404, "SyncStateNotFound"),
        (400, "SyncStateInvalid"),
    ],
)
def test_an_invalid_link_asks_for_a_new_enumeration(status: int, code: str, scene: Scene) -> None:
    assert isinstance(said(status, code, scene=scene), CursorExpired)


@pytest.mark.parametrize("scene", list(Scene))
@pytest.mark.parametrize(
    ("status", "code"), [(429, ""), (503, ""), (509, ""), (403, "activityLimitReached")]
)
def test_a_throttle_waits_as_long_as_told(status: int, code: str, scene: Scene) -> None:
    error = said(status, code, scene=scene, told=17.0)
    assert isinstance(error, Throttled)
    assert error.seconds == 17.0


TABLE = [
    (401, "", METADATA, NeedsAttention, Reason.NEEDS_SIGN_IN),
    (401, "", (Scene.CONTENT,), NeedsAttention, Reason.NEEDS_SIGN_IN),
    (401, "", (Scene.HOST,), Transient, None),
    (403, "accessDenied", METADATA, NeedsAttention, Reason.ACCESS_DENIED),
    (403, "accessDenied", (Scene.CONTENT,), Permanent, Reason.DOWNLOAD_FORBIDDEN),
    (403, "accessDenied", (Scene.HOST,), Transient, None),
    (403, "malwareDetected", (Scene.CONTENT, Scene.HOST), Permanent, Reason.MALWARE),
    (404, "itemNotFound", (Scene.ITEM, Scene.CONTENT), NotFound, None),
    (404, "itemNotFound", (Scene.DRIVE,), NeedsAttention, Reason.DRIVE_GONE),
    (404, "", (Scene.HOST,), Transient, None),
    (400, "invalidRequest", (Scene.DRIVE,), NeedsAttention, Reason.DRIVE_GONE),
    (400, "invalidRequest", (Scene.CHANGES,), CursorExpired, None),
    (400, "invalidRequest", (Scene.ENUMERATE,), NeedsAttention, Reason.SOURCE_MISBEHAVES),
    (400, "invalidRequest", (Scene.ITEM, Scene.CONTENT), Transient, None),
    (423, "notAllowed", METADATA, NeedsAttention, Reason.SITE_LOCKED),
    (423, "resourceLocked", (Scene.ITEM,), Transient, None),
    (423, "resourceLocked", (Scene.CONTENT, Scene.HOST), InUse, None),
    (423, "notAllowed", (Scene.CONTENT,), InUse, None),
    (500, "cannotSnapshotTree", METADATA, Transient, None),
    (501, "notSupported", DELTA, NeedsAttention, Reason.SOURCE_MISBEHAVES),
    (500, "", tuple(Scene), Transient, None),
    (502, "", tuple(Scene), Transient, None),
    (504, "", tuple(Scene), Transient, None),
    (507, "", tuple(Scene), Transient, None),
    (408, "", tuple(Scene), Transient, None),
    (418, "", tuple(Scene), Transient, None),
]


@pytest.mark.parametrize(("status", "code", "scenes", "kind", "reason"), TABLE)
def test_the_table(
    status: int, code: str, scenes: tuple[Scene, ...], kind: type, reason: Reason | None
) -> None:
    for scene in scenes:
        assert outcome(said(status, code, scene=scene)) == (kind, reason), scene


def test_codes_are_read_at_every_depth_and_in_either_spelling() -> None:
    body = {
        "error": {
            "code": "General",
            "message": "No",
            "innererror": {"code": "Deeper", "innerError": {"code": "ResyncRequired"}},
        }
    }
    answer = httpx.Response(400, headers={"Request-Id": "abc"})
    refusal = refusal_of(answer, json.dumps(body).encode(), now=0)
    assert refusal.codes == ("general", "deeper", "resyncrequired")
    assert isinstance(translate(refusal, Scene.CHANGES), CursorExpired)
    assert "abc" in str(translate(refusal, Scene.CHANGES))


@pytest.mark.parametrize(
    "body",
    [
        b"", b"<html>Forbidden</html>", b"[]", b"null", b'"x"', b'{"error":"text"}',
        b'{"error":null}', b'{"error":{"code":7,"message":[]}}', b'{"error":{"innerError":[1]}}',
        b"\xff\xfe", b'{"error":', b"[" * 100_000, b'{"error":{"message":"\\ud800"}}',
    ],
)  # fmt: skip
def test_any_body_is_survived(body: bytes) -> None:
    refusal = refusal_of(httpx.Response(403), body, now=0)
    assert outcome(translate(refusal, Scene.ITEM)) == (NeedsAttention, Reason.ACCESS_DENIED)
    str(translate(refusal, Scene.ITEM)).encode()


def test_sharepoint_marks_malware_by_a_header() -> None:
    answer = httpx.Response(403, headers={"X-Virus-Infected": "Eicar"})
    error = translate(refusal_of(answer, b"<html>", now=0), Scene.CONTENT)
    assert outcome(error) == (Permanent, Reason.MALWARE)


def test_urls_in_messages_lose_what_opens_the_file() -> None:
    body = {"error": {"code": "x", "message": "See https://a.example/f?tempauth=SECRET now"}}
    refusal = refusal_of(httpx.Response(500), json.dumps(body).encode(), now=0)
    assert "SECRET" not in str(translate(refusal, Scene.ITEM))


def _exceptions(base: type) -> set[type]:
    return {base}.union(*(_exceptions(sub) for sub in base.__subclasses__()))


def test_every_exception_of_httpx_has_an_answer() -> None:
    kinds = _exceptions(httpx.HTTPError) | _exceptions(httpx.StreamError) | {httpx.InvalidURL}
    down = {httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError}
    for kind in kinds:
        error = kind.__new__(kind)
        Exception.__init__(error, "it said https://h.example/?tempauth=SECRET")
        ours = broken(error, Scene.HOST)
        if kind in down:
            assert isinstance(ours, PartDown)
            assert ours.part is Part.SOURCE
        else:
            assert isinstance(ours, NeedsAttention | Transient)
        assert "SECRET" not in str(ours)
