"""Why there is nothing to import: not found, not permitted, and not wanted are three things."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.domain.explanations import explain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drivefeed.domain.reasons import Reason

_MOST_REASONS = 4


def nothing_found(where: str) -> str:
    """Say that a folder or drive holds no file, though it may be read."""
    return (
        f"Nothing was found: '{where}' may be read, and holds no file. Check that it is the right "
        "folder; files that come into it later are imported."
    )


def nothing_permitted(where: str, why: str = "") -> str:
    """Say that nothing of a folder or drive may be read.

    Args:
        where: its name or address.
        why: the sentence of the refusal, if it is to be told here.
    """
    words = (
        f"Nothing is permitted: whether '{where}' holds files is not known, because the account "
        "may not read it."
    )
    return f"{words} {why}" if why else words


def nothing_eligible(where: str, skipped: Mapping[Reason, int]) -> str:
    """Say that files are there and none of them is wanted.

    Args:
        where: the folder's name or address.
        skipped: how many files were skipped for which reason; at least one.
    """
    found = sum(skipped.values())
    most = sorted(skipped.items(), key=lambda one: (-one[1], one[0]))[:_MOST_REASONS]
    reasons = "; ".join(f"{count}: {explain(one).meaning.rstrip('.')}" for one, count in most)
    files = "1 file is" if found == 1 else f"{found} files are"
    return (
        f"Nothing is eligible: {files} in '{where}', and the connection wants none of them "
        f"({reasons}). Change its filters, or leave it as it is."
    )
