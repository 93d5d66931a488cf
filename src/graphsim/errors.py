"""Graph's error answers, as an exception that carries one."""

from __future__ import annotations

from typing import Any


class GraphError(Exception):
    """A refusal in Graph's shape: ``{"error": {"code", "message", "innerError"}}``.

    Args:
        status: HTTP status.
        code: The outer code, one of the documented base codes.
        message: One sentence for a person.
        inner: The detailed code inside ``innerError``, if any.
        headers: Extra answer headers, such as ``Retry-After`` or ``Location``.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        inner: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.inner = inner
        self.headers = headers or {}

    def body(self, request_id: str, client_request_id: str, date: str) -> dict[str, Any]:
        """Return the JSON body of the answer; ``date`` is ISO 8601 without a zone."""
        inner: dict[str, Any] = {"code": self.inner} if self.inner else {}
        inner |= {"date": date, "request-id": request_id, "client-request-id": client_request_id}
        return {"error": {"code": self.code, "message": self.message, "innerError": inner}}


def not_found(what: str = "The resource could not be found.") -> GraphError:
    """Return the 404 of an unknown item, drive, user or path."""
    return GraphError(404, "itemNotFound", what)


def invalid_request(message: str) -> GraphError:
    """Return the 400 of a request that makes no sense."""
    return GraphError(400, "invalidRequest", message)


def resync_required(
    location: str | None, inner: str = "resyncChangesApplyDifferences", code: str | None = None
) -> GraphError:
    """Return the 410 that sends a client back to a full enumeration at ``location``."""
    headers = {"Location": location} if location else None
    message = "The token is no longer valid; enumerate the drive again."
    return GraphError(410, code or "resyncRequired", message, inner, headers)


USUAL_CODES = {
    400: "invalidRequest",
    401: "unauthenticated",
    403: "accessDenied",
    404: "itemNotFound",
    410: "resyncRequired",
    423: "notAllowed",
    429: "activityLimitReached",
    501: "notSupported",
    503: "serviceNotAvailable",
    509: "activityLimitReached",
}
"""The outer code that goes with a status, where a fault names none."""
