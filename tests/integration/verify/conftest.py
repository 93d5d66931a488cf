from __future__ import annotations

from support.valkey import own_valkey

__all__ = ["own_valkey"]
