"""One bucket through boto3: the blocking calls, one method each."""

from __future__ import annotations

import threading
from base64 import b64encode
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import md5
from typing import TYPE_CHECKING, Any, cast

from drivefeed.domain.errors import NotFound, Transient
from drivefeed.outbound import Outbound
from drivefeed.stores.s3_errors import s3_errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from botocore.response import StreamingBody
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.literals import BucketLocationConstraintType
    from mypy_boto3_s3.type_defs import (
        CompletedPartTypeDef,
        ListObjectsV2OutputTypeDef,
        ListObjectsV2RequestTypeDef,
    )

_ANY_REGION = "us-east-1"
"""What AWS takes for "no location constraint", and what other services accept as their own."""

_CONNECT_SECONDS = 5
_READ_SECONDS = 60


@dataclass(frozen=True)
class Access:
    """How to get at a bucket. Secrets stay out of its representation."""

    bucket: str
    endpoint_url: str | None
    region: str | None
    access_key: str | None
    secret_key: str | None = field(repr=False)
    connections: int
    outbound: Outbound = field(default_factory=Outbound.from_environment, repr=False)

    @property
    def where(self) -> str:
        """The bucket as sentences call it."""
        at = f" at {self.endpoint_url}" if self.endpoint_url else ""
        return f"bucket {self.bucket!r}{at}"


class Bucket:
    """Blocking calls on a bucket. Each raises errors of :mod:`drivefeed.domain.errors` only.

    Bodies are ``bytearray``, which botocore takes although its stubs do not say so: a conversion
    would hold each part twice.
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        self._making = threading.Lock()
        self.where = access.where

    @cached_property
    def _made(self) -> S3Client:
        import boto3
        from botocore.config import Config

        access = self._access
        options: dict[str, Any] = {
            "signature_version": "s3v4",
            "connect_timeout": _CONNECT_SECONDS,
            "read_timeout": _READ_SECONDS,
            "max_pool_connections": access.connections,
            # Waiting for a store that is down is the work of breakers and reminders.
            "retries": {"mode": "standard", "total_max_attempts": 2},
            # Content-MD5, which we send, is checked by every S3 service; the CRC trailers that
            # botocore adds by default are refused by some of them.
            "request_checksum_calculation": "when_required",
            "response_checksum_validation": "when_required",
        }
        session = boto3.Session(
            aws_access_key_id=access.access_key,
            aws_secret_access_key=access.secret_key,
            region_name=access.region,
        )
        region = session.region_name or _ANY_REGION
        service = access.endpoint_url or f"https://s3.{region}.amazonaws.com"
        # None would make botocore read the environment by rules of its own.
        options["proxies"] = access.outbound.proxies_for(service)
        if access.endpoint_url:
            options["s3"] = {"addressing_style": "path"}
        return session.client(
            "s3",
            endpoint_url=access.endpoint_url,
            region_name=region,
            verify=access.outbound.trusted(),
            config=Config(**options),
        )

    @property
    def _client(self) -> S3Client:
        with self._making:  # a boto3 session may not be used by two threads, its client may
            return self._made

    def close(self) -> None:
        """Close the connections."""
        if "_made" in self.__dict__:
            self._made.close()

    def put(self, key: str, body: bytearray, content_type: str) -> None:
        """Store an object unless there is one.

        Raises:
            AlreadyExists: there is one.
        """
        with s3_errors(self.where, key):
            answer = self._client.put_object(
                Bucket=self._access.bucket,
                Key=key,
                Body=cast(bytes, body),
                ContentType=content_type,
                ContentMD5=_content_md5(body),
                IfNoneMatch="*",
            )
        self._require_same(key, body, cast("dict[str, Any]", answer))

    def address(self, key: str, seconds: int) -> str:
        """Return a URL that gives an object to anybody for ``seconds``; nothing is asked."""
        with s3_errors(self.where, key):
            return self._client.generate_presigned_url(
                "get_object",
                Params={"Bucket": self._access.bucket, "Key": key},
                ExpiresIn=seconds,
            )

    def head(self, key: str) -> tuple[int, int] | None:
        """Return size and time of modification (milliseconds), None if there is no object."""
        try:
            with s3_errors(self.where, key):
                answer = self._client.head_object(Bucket=self._access.bucket, Key=key)
        except NotFound:
            # The answer to HEAD has no body: a missing bucket looks like a missing object.
            self.require()
            return None
        return answer["ContentLength"], int(answer["LastModified"].timestamp() * 1000)

    def open(self, key: str) -> StreamingBody:
        """Open an object for reading.

        Raises:
            NotFound: there is none.
        """
        with s3_errors(self.where, key):
            return self._client.get_object(Bucket=self._access.bucket, Key=key)["Body"]

    def read(self, key: str, body: StreamingBody, size: int) -> bytes:
        """Read up to ``size`` bytes, none at the end."""
        with s3_errors(self.where, key):
            return body.read(size)

    def delete(self, key: str) -> None:
        """Delete an object, if there is one."""
        with s3_errors(self.where, key):
            self._client.delete_object(Bucket=self._access.bucket, Key=key)

    def page(
        self, prefix: str, token: str | None, *, by_folder: bool = False
    ) -> ListObjectsV2OutputTypeDef:
        """Fetch up to 1,000 entries of a listing, optionally with folders rolled up."""
        request: ListObjectsV2RequestTypeDef = {"Bucket": self._access.bucket, "Prefix": prefix}
        if token:
            request["ContinuationToken"] = token
        if by_folder:
            request["Delimiter"] = "/"
        with s3_errors(self.where):
            return self._client.list_objects_v2(**request)

    def begin(self, key: str, content_type: str) -> str:
        """Begin a multipart upload and return its id."""
        with s3_errors(self.where, key):
            return self._client.create_multipart_upload(
                Bucket=self._access.bucket, Key=key, ContentType=content_type
            )["UploadId"]

    def send(self, key: str, upload: str, number: int, body: bytearray) -> CompletedPartTypeDef:
        """Upload part ``number`` (from 1) and compare the checksum that comes back.

        Raises:
            Transient: the bytes were damaged on the way.
        """
        with s3_errors(self.where, key):
            answer = self._client.upload_part(
                Bucket=self._access.bucket,
                Key=key,
                UploadId=upload,
                PartNumber=number,
                Body=cast(bytes, body),
                ContentMD5=_content_md5(body),
            )
        self._require_same(key, body, cast("dict[str, Any]", answer))
        return {"PartNumber": number, "ETag": answer["ETag"]}

    def complete(self, key: str, upload: str, parts: list[CompletedPartTypeDef]) -> None:
        """Make the parts an object unless there is one.

        Raises:
            AlreadyExists: there is one.
        """
        with s3_errors(self.where, key):
            self._client.complete_multipart_upload(
                Bucket=self._access.bucket,
                Key=key,
                UploadId=upload,
                MultipartUpload={"Parts": parts},
                IfNoneMatch="*",
            )

    def abort(self, key: str, upload: str) -> None:
        """Abort a multipart upload and free its parts."""
        with s3_errors(self.where, key):
            self._client.abort_multipart_upload(
                Bucket=self._access.bucket, Key=key, UploadId=upload
            )

    def uploads(self, prefix: str) -> Iterator[tuple[str, str, int]]:
        """Yield key, id and beginning (milliseconds) of unfinished multipart uploads."""
        with s3_errors(self.where):
            pages = self._client.get_paginator("list_multipart_uploads").paginate(
                Bucket=self._access.bucket, Prefix=prefix
            )
            for page in pages:
                for upload in page.get("Uploads", []):
                    began = int(upload["Initiated"].timestamp() * 1000)
                    yield upload["Key"], upload["UploadId"], began

    def require(self) -> None:
        """Return if the bucket is there.

        Raises:
            PartDown: it is not, or we may not see it.
        """
        with s3_errors(self.where):
            self._client.head_bucket(Bucket=self._access.bucket)

    def create(self) -> None:
        """Create the bucket; fine if it is ours already."""
        region = self._access.region or _ANY_REGION
        client = self._client
        with s3_errors(self.where):
            try:
                if region == _ANY_REGION:
                    client.create_bucket(Bucket=self._access.bucket)
                else:
                    place = cast("BucketLocationConstraintType", region)
                    client.create_bucket(
                        Bucket=self._access.bucket,
                        CreateBucketConfiguration={"LocationConstraint": place},
                    )
            except client.exceptions.BucketAlreadyOwnedByYou:
                return

    def _require_same(self, key: str, body: bytearray, answer: dict[str, Any]) -> None:
        # Under KMS keys or keys of the customer the ETag is no MD5 (S3 API reference, "Object");
        # Content-MD5 was checked by the service in any case.
        if (
            answer.get("ServerSideEncryption", "AES256") != "AES256"
            or "SSECustomerAlgorithm" in answer
        ):
            return
        came_back = answer["ETag"].strip('"')
        if came_back != md5(body, usedforsecurity=False).hexdigest():
            raise Transient(
                f"The {self.where} confirmed other bytes of {key!r} than were sent. Try again."
            )


def _content_md5(body: bytearray) -> str:
    return b64encode(md5(body, usedforsecurity=False).digest()).decode()
