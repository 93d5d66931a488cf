"""Who is let in, and what is said of requests that are wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.backends.contract import MOST_REQUEST_BYTES, VERSION
from drivefeed.services.conformance.finding import Check, Fault, NotTried

if TYPE_CHECKING:
    from drivefeed.services.conformance.bench import Bench
    from drivefeed.services.conformance.speaker import Answer

_HEALTH = "/v1/health"
_HOUR = 3600
_UNAUTHORIZED = frozenset({401, 403})


async def _health(bench: Bench) -> None:
    answer = await bench.speaker.ask("GET", _HEALTH)
    if not answer.is_success or (answer.body or {}).get("version") != VERSION:
        raise Fault(
            f"GET {_HEALTH} answered {answer}.",
            f'Answer 200 with {{"version": "{VERSION}"}} to whoever has the secret; 401 means '
            "that the backend and the kit have different secrets or clocks.",
        )


async def _wrong_secret(bench: Bench) -> None:
    if bench.speaker.credential is None:
        raise NotTried("No secret was given with --secret-file.")
    wrong = bench.speaker.headers("GET", _HEALTH, b"", secret="not-the-secret")  # noqa: S106
    for words, headers in (("a wrong secret", wrong), ("no secret", {})):
        _refused(words, await bench.speaker.ask("GET", _HEALTH, headers=headers))


async def _old_signature(bench: Bench) -> None:
    for words, age in (("an hour old", _HOUR), ("of an hour from now", -_HOUR)):
        headers = bench.speaker.headers("GET", _HEALTH, b"", age=age)
        answer = await bench.speaker.ask("GET", _HEALTH, headers=headers)
        _refused(f"a signature {words}", answer)


async def _other_body(bench: Bench) -> None:
    target = "/v1/jobs"
    headers = bench.speaker.headers("POST", target, b"{}")
    answer = await bench.speaker.ask("POST", target, bench.draft().shape, headers=headers)
    _refused("a signature of another body", answer)


async def _other_address(bench: Bench) -> None:
    headers = bench.speaker.headers("GET", _HEALTH, b"")
    answer = await bench.speaker.ask("GET", "/v1/jobs?key=check:1", headers=headers)
    _refused("a signature of another address", answer)


async def _replay(bench: Bench) -> None:
    headers = bench.speaker.headers("GET", _HEALTH, b"")
    first = await bench.speaker.ask("GET", _HEALTH, headers=headers)
    if first.is_success:
        _refused(
            "a signature that was used", await bench.speaker.ask("GET", _HEALTH, headers=headers)
        )


def _refused(words: str, answer: Answer) -> None:
    if answer.status not in _UNAUTHORIZED:
        raise Fault(
            f"A request with {words} was answered {answer.status}.",
            "Answer 401 before anything else is looked at; docs/backend-contract.md says what is "
            "signed, and the sample backend does it in thirty lines.",
        )


async def _malformed(bench: Bench) -> None:
    right = bench.draft().shape
    wrong: dict[str, bytes | object] = {
        "no JSON": b"{this is no JSON",
        "an empty object": {},
        "a list": [],
        "no key": {name: value for name, value in right.items() if name != "key"},
        "a seq in words": {**right, "seq": "seven"},
        "round 0": {**right, "round": 0},
        "no content": {**right, "content": {}},
        "a document id of 10,000 characters": {**right, "document_id": "x" * 10_000},
    }
    for words, shape in wrong.items():
        raw = shape if isinstance(shape, bytes) else None
        answer = await bench.speaker.ask("POST", "/v1/jobs", shape, raw=raw)
        if not answer.is_refusal:
            raise Fault(
                f"A submission with {words} was answered {answer}.",
                "Look at every member before it is used, and answer 400 with the code "
                "'malformed'; 500 would be tried again and again.",
            )


async def _too_large(bench: Bench) -> None:
    shape = {**bench.draft().shape, "metadata": {"filler": "x" * (MOST_REQUEST_BYTES + 1)}}
    try:
        answer = await bench.speaker.ask("POST", "/v1/jobs", shape)
    except Fault:
        return  # it hung up, which is an answer too
    if not answer.is_refusal:
        raise Fault(
            f"A request of more than {MOST_REQUEST_BYTES >> 10} KiB was answered {answer}.",
            "Bound what is read of a request, and answer 413.",
        )


CHECKS = (
    Check("health", "It answers, and speaks version v1.", _health),
    Check("wrong-secret", "Whoever does not have the secret gets 401.", _wrong_secret),
    Check("old-signature", "A signature is good for five minutes.", _old_signature, signed=True),
    Check("other-body", "A signature fits no other body.", _other_body, signed=True),
    Check("other-address", "A signature fits no other address.", _other_address, signed=True),
    Check("replay", "A signature is good once.", _replay, signed=True),
    Check("malformed", "A wrong request gets 4xx.", _malformed),
    Check("too-large", "A request that is too large is refused.", _too_large),
)
"""In the order in which they are told."""
