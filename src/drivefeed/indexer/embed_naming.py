"""How the fields of an embedding are called by whoever chose it: remedies name what was written."""

from __future__ import annotations

from typing import Protocol


class Naming(Protocol):
    """Calls fields as they were given."""

    def __call__(self, *fields: str) -> str:
        """Return fields of an :class:`~drivefeed.indexer.providers.EmbeddingChoice`, joined by or.

        It stands in a sentence, behind "Check" or "Say it as".
        """
        ...


def in_settings(*fields: str) -> str:
    """Call fields as the settings do, and as an organization's own choice does."""
    names = " or ".join(f"'{one}'" for one in fields)
    return f"{names} of the embedding, in the settings or with 'drivefeed org embedding'"
