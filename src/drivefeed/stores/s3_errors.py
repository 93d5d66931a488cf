"""What errors of an S3 service and of boto3 mean, for every one of them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from drivefeed.domain.errors import (
    AlreadyExists,
    DrivefeedError,
    NotFound,
    Part,
    PartDown,
    Transient,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from botocore.exceptions import BotoCoreError, ClientError

_TAKEN = {"PreconditionFailed", "412"}
_AGAIN = {
    "BadDigest": "the bytes were damaged on the way",
    "ConditionalRequestConflict": "another upload under the same key was just being completed",
    "IncompleteBody": "the connection broke",
    "InvalidPart": "the service lost a part",
    "NoSuchUpload": "the upload was aborted meanwhile",
    "OperationAborted": "another operation on the same key was in progress",
    "RequestTimeout": "the service waited too long for our bytes",
    "XAmzContentSHA256Mismatch": "the bytes were damaged on the way",
}
_REMEDIES = {
    "AccessDenied": "these credentials may not do this. Allow them to read, write, list and "
    "delete in the bucket",
    "AccountProblem": "there is a problem with the account. Ask the provider",
    "ExpiredToken": "the session token has expired. Renew the credentials",
    "InvalidAccessKeyId": "it does not know the access key. Correct the access key",
    "InvalidToken": "the session token is not valid. Renew the credentials",
    "RequestTimeTooSkewed": "this machine's clock is wrong. Set it by NTP",
    "SignatureDoesNotMatch": "the secret does not belong to the access key. Correct the secret",
    "401": "it refuses these credentials. Correct them",
    "403": "it refuses these credentials. Correct them, or allow them to use the bucket",
    "InvalidBucketName": "a bucket cannot be called that. Correct the name",
    "NoSuchBucket": "there is no such bucket. Create it, or correct its name",
    "404": "there is no such bucket. Create it, or correct its name",
    "PermanentRedirect": "the bucket is in another region. Correct the region or the endpoint",
    "301": "the bucket is in another region. Correct the region or the endpoint",
    "AuthorizationHeaderMalformed": "the region is not the bucket's. Correct the region",
    "IllegalLocationConstraintException": "the region is not the endpoint's. Correct the region",
    "InsufficientStorage": "its disks are full. Free or add space",
    "QuotaExceeded": "its quota is used up. Raise the quota or free space",
    "507": "its disks are full. Free or add space",
    "SlowDown": "it asks us to slow down. Allow it more load, or run fewer workers",
    "ServiceUnavailable": "it is overloaded or starting. Wait, or look at its logs",
    "503": "it is overloaded or starting. Wait, or look at its logs",
    "TooManyRequests": "it asks us to slow down. Allow it more load, or run fewer workers",
}
_SERVER_FAULT = 500


def answer_error(error: ClientError, *, where: str, key: str | None) -> DrivefeedError:
    """Translate an answer of the service.

    Args:
        error: boto3's form of the answer; credentials are no part of it.
        where: how sentences call the store, such as ``bucket 'documents' at http://…``.
        key: the object it was about, if it was about one.
    """
    code = str(error.response.get("Error", {}).get("Code", ""))
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    subject = f"the object {key!r} in the {where}" if key else f"the {where}"
    if code in _TAKEN:
        return AlreadyExists(f"There is {subject} already.")
    if code in _AGAIN:
        return Transient(f"A request about {subject} failed because {_AGAIN[code]}. Try again.")
    if code == "NoSuchKey" or (code == "404" and key):
        return NotFound(f"There is no object under {key!r} in the {where}.")
    if code in _REMEDIES:
        return _down(where, f"{_REMEDIES[code]}.")
    message = str(error.response.get("Error", {}).get("Message", ""))
    what = "it has an inner fault in" if status >= _SERVER_FAULT else "it refused"
    return _down(where, f"{what} {error.operation_name} (HTTP {status}, {code}: {message}).")


def connection_error(error: BotoCoreError, *, where: str) -> DrivefeedError:
    """Translate what boto3 raises where there was no answer, or no request."""
    from botocore import exceptions as boto

    text = f"boto3 says: {error}"
    if isinstance(error, boto.IncompleteReadError | boto.ResponseStreamingError):
        return Transient(f"A download from the {where} broke off. Try again.")
    if isinstance(error, boto.NoCredentialsError):
        text = "no credentials were found. Set an access key and a secret, or a role."
    elif isinstance(error, boto.PartialCredentialsError | boto.CredentialRetrievalError):
        text = "credentials were found, but they are incomplete or cannot be fetched."
    elif isinstance(error, boto.SSLError):
        text = "no trusted TLS connection came about. Check the endpoint and its certificate."
    elif isinstance(error, boto.ConnectTimeoutError | boto.ReadTimeoutError):
        text = "it did not answer in time. Check that it runs and can be reached."
    elif isinstance(error, boto.ConnectionError | boto.HTTPClientError):
        text = "it cannot be reached. Check that it runs and that the endpoint is right."
    elif isinstance(error, boto.ParamValidationError | boto.NoRegionError):
        text = "its name, region or key is not valid. Correct the settings."
    return _down(where, text)


@contextmanager
def s3_errors(where: str, key: str | None = None) -> Iterator[None]:
    """Raise errors of :mod:`drivefeed.domain.errors` in place of boto3's inside."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        raise answer_error(error, where=where, key=key) from error
    except BotoCoreError as error:
        raise connection_error(error, where=where) from error
    except ValueError as error:  # botocore on an endpoint that is no URL
        raise _down(where, f"the endpoint is not valid: {error}. Correct the endpoint.") from error
    except OSError as error:  # a socket error below botocore, in the middle of a body
        raise Transient(f"The connection to the {where} broke. Try again.") from error


def _down(where: str, text: str) -> PartDown:
    return PartDown(f"The {where} cannot be used: {text}", part=Part.STORE)
