"""A signature fits one request, for five minutes, once."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from drivefeed.backends.signing import (
    SIGNATURE_HEADER,
    WINDOW_SECONDS,
    Credential,
    Gate,
    signature,
)
from support.clock import CountedIds, ManualClock

SECRET = "a-secret-of-the-tests-4711"
TARGET = "/v1/jobs?key=import%3A1"


def refusal(gate: Gate, signed: str, **changes: object) -> str:
    asked = {"authorization": "", "method": "GET", "target": TARGET, "body": b"", **changes}
    return gate.refusal(signed=signed, **asked)  # type: ignore[arg-type]


def signed(clock: ManualClock, ids: CountedIds, secret: str = SECRET) -> str:
    headers = Credential(secret).headers(clock, ids, method="GET", target=TARGET, body=b"")
    return headers[SIGNATURE_HEADER]


def test_the_signature_is_what_the_contract_says() -> None:
    lines = f"1800000000\nnonce-12345\nPOST\n/v1/jobs\n{hashlib.sha256(b'{}').hexdigest()}"
    right = hmac.new(SECRET.encode(), lines.encode(), hashlib.sha256).hexdigest()
    made = signature(
        SECRET, at=1_800_000_000, nonce="nonce-12345", method="post", target="/v1/jobs", body=b"{}"
    )
    assert made == f"t=1800000000,n=nonce-12345,v1={right}"


def test_a_right_signature_is_let_in_once() -> None:
    clock, ids = ManualClock(), CountedIds()
    gate = Gate(Credential(SECRET), clock)
    written = signed(clock, ids)
    assert refusal(gate, written) == ""
    assert "used before" in refusal(gate, written)
    assert refusal(gate, signed(clock, ids)) == ""


@pytest.mark.parametrize(
    "changes",
    [{"method": "DELETE"}, {"target": "/v1/jobs?key=import%3A2"}, {"body": b"{}"}],
    ids=["method", "address", "body"],
)
def test_it_fits_no_other_request(changes: dict[str, object]) -> None:
    clock = ManualClock()
    gate = Gate(Credential(SECRET), clock)
    assert "does not fit" in refusal(gate, signed(clock, CountedIds()), **changes)


def test_another_secret_and_no_signature_are_refused() -> None:
    clock = ManualClock()
    gate = Gate(Credential(SECRET), clock)
    assert "another secret" in refusal(gate, signed(clock, CountedIds(), "another-secret-123"))
    for written in ("", "t=1,n=2,v1=3", "t=x,n=abcdefgh,v1=" + "0" * 64):
        assert "missing" in refusal(gate, written)


def test_it_is_good_for_the_window() -> None:
    clock, ids = ManualClock(), CountedIds()
    gate = Gate(Credential(SECRET), clock)
    early, late = signed(clock, ids), signed(clock, ids)
    clock.turn(seconds=WINDOW_SECONDS)
    assert refusal(gate, early) == ""
    clock.turn(seconds=1)
    assert "older" in refusal(gate, late)


def test_what_expired_is_forgotten_and_stays_refused() -> None:
    clock, ids = ManualClock(), CountedIds()
    gate = Gate(Credential(SECRET), clock)
    written = signed(clock, ids)
    assert refusal(gate, written) == ""
    clock.turn(seconds=3 * WINDOW_SECONDS)
    assert refusal(gate, signed(clock, ids)) == ""
    assert len(gate._seen) == 1
    assert "older" in refusal(gate, written)


def test_a_bearer_secret_is_compared_whole() -> None:
    gate = Gate(Credential(SECRET, "bearer"), ManualClock())
    for given, good in ((f"Bearer {SECRET}", True), (f"Bearer {SECRET[:-1]}", False), ("", False)):
        assert (refusal(gate, "", authorization=given) == "") is good


def test_the_secret_is_no_part_of_what_is_shown() -> None:
    assert SECRET not in repr(Credential(SECRET))
