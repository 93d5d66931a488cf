"""The OpenAPI document of the backend contract, made from the application that serves it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from drivefeed.backends.contract import PROBLEM_TYPE
from drivefeed.backends.serving import application
from drivefeed.backends.signing import SIGNATURE_HEADER

if TYPE_CHECKING:
    from drivefeed.backends.contract import SubmissionShape
    from drivefeed.ports import IngestionBackend

_JSON: Final = "application/json"
_WORDS: Final = "docs/backend-contract.md says what must hold and how requests are signed."


def described() -> dict[str, Any]:
    """Return the document, OpenAPI 3.1."""
    app = application(cast("IngestionBackend", None), _nothing)
    whole: dict[str, Any] = app.openapi()
    whole["info"]["description"] = _WORDS
    whole["servers"] = [
        {"url": "https://backend.example", "description": "The url of the settings"}
    ]
    whole["components"]["securitySchemes"] = {
        "hmac": {
            "type": "apiKey",
            "in": "header",
            "name": SIGNATURE_HEADER,
            "description": "t=SECONDS,n=NONCE,v1=HEX: HMAC-SHA256 over time, nonce, method, "
            "address and the SHA-256 of the body.",
        },
        "bearer": {"type": "http", "scheme": "bearer"},
    }
    whole["security"] = [{"hmac": []}, {"bearer": []}]
    for methods in whole["paths"].values():
        for asked in methods.values():
            _tidy(asked)
    for unused in ("HTTPValidationError", "ValidationError"):
        whole["components"]["schemas"].pop(unused, None)
    return whole


def _tidy(asked: dict[str, Any]) -> None:
    """Say of errors what they are: problems, and no validation errors of a framework."""
    asked.pop("operationId", None)
    responses = asked["responses"]
    for status, answer in list(responses.items()):
        content = answer.get("content", {})
        schema = content.get(_JSON, {}).get("schema", {})
        if "HTTPValidationError" in schema.get("$ref", ""):
            del responses[status]
        elif not status.startswith("2") and _JSON in content:
            answer["content"] = {PROBLEM_TYPE: content[_JSON]}
    asked["responses"] = dict(sorted(responses.items()))


async def _nothing(shape: SubmissionShape) -> str:
    raise NotImplementedError(shape.key)
