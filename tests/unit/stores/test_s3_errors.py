"""Every error of boto3 becomes one of ours, and no message holds a secret."""

from __future__ import annotations

import inspect

import botocore.exceptions
import pytest
from botocore.exceptions import BotoCoreError, ClientError

from drivefeed.domain.errors import (
    AlreadyExists,
    DrivefeedError,
    NotFound,
    Part,
    PartDown,
    Transient,
)
from drivefeed.stores.s3_errors import _AGAIN, _REMEDIES, answer_error, connection_error, s3_errors

WHERE = "bucket 'documents'"


def answer(code: str, status: int) -> ClientError:
    parts = {
        "Error": {"Code": code, "Message": "m"},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return ClientError(parts, "PutObject")  # type: ignore[arg-type] - as botocore makes it


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("PreconditionFailed", 412, AlreadyExists),
        ("412", 412, AlreadyExists),
        ("ConditionalRequestConflict", 409, Transient),
        ("NoSuchUpload", 404, Transient),
        ("BadDigest", 400, Transient),
        ("NoSuchKey", 404, NotFound),
        ("404", 404, NotFound),
        ("NoSuchBucket", 404, PartDown),
        ("AccessDenied", 403, PartDown),
        ("403", 403, PartDown),
        ("SlowDown", 503, PartDown),
        ("InternalError", 500, PartDown),
        ("", 502, PartDown),
        ("EntityTooLarge", 400, PartDown),
        ("SomethingNew", 418, PartDown),
    ],
)
def test_answers(code: str, status: int, expected: type[DrivefeedError]) -> None:
    error = answer_error(answer(code, status), where=WHERE, key="org/k")
    assert type(error) is expected
    assert WHERE in str(error)
    assert str(error).endswith(".")


@pytest.mark.parametrize("code", [*_REMEDIES, *_AGAIN])
def test_without_a_key_a_404_is_the_bucket(code: str) -> None:
    error = answer_error(answer(code, 404), where=WHERE, key=None)
    assert isinstance(error, PartDown | Transient)


def test_an_answer_without_anything_in_it() -> None:
    assert isinstance(answer_error(ClientError({}, "X"), where=WHERE, key=None), PartDown)


@pytest.mark.parametrize(
    "kind",
    [
        kind
        for _, kind in inspect.getmembers(botocore.exceptions, inspect.isclass)
        if issubclass(kind, BotoCoreError)
    ],
)
def test_every_error_of_botocore_has_a_meaning(kind: type[BotoCoreError]) -> None:
    error = kind.__new__(kind)
    Exception.__init__(error, "text")
    ours = connection_error(error, where=WHERE)
    assert isinstance(ours, Transient | PartDown)
    if isinstance(ours, PartDown):
        assert ours.part is Part.STORE
    assert WHERE in str(ours)


def test_errors_that_are_none_of_botocore() -> None:
    with pytest.raises(Transient), s3_errors(WHERE):
        raise ConnectionResetError
    with pytest.raises(PartDown, match="endpoint"), s3_errors(WHERE):
        raise ValueError("Invalid endpoint: x")
    with pytest.raises(ZeroDivisionError), s3_errors(WHERE):
        raise ZeroDivisionError
