from __future__ import annotations

from quirks.conftest import docs, sim, stand

__all__ = ["docs", "sim", "stand"]
