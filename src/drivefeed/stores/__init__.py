"""Object stores: a folder of the local disk, or a bucket of an S3 service."""

from drivefeed.stores.directory import DirectoryStore
from drivefeed.stores.s3 import S3Store

__all__ = ["DirectoryStore", "S3Store"]
