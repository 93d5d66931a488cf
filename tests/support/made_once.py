"""What libraries make anew each time although it stays the same, made once."""

from __future__ import annotations

import functools
import importlib
from typing import Any


def keep_version_of_redis() -> None:
    """Read its version once; each new connection reads the package's description for it."""
    redis_utils: Any = importlib.import_module("redis.utils")
    if not hasattr(redis_utils.get_lib_version, "cache_info"):
        redis_utils.get_lib_version = functools.cache(redis_utils.get_lib_version)
    redis_utils.get_lib_version()
