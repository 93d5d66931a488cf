"""Asking a person before what cannot be taken back, and telling which files a command was about."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from drivefeed.cli.output import escape, on_terminal, say
from drivefeed.cli.words import count_of
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Sequence


def confirmed(question: str, *, refusal: str, as_json: bool) -> bool:
    """Ask a person, and return the answer.

    Args:
        question: what is asked.
        refusal: what is said where there is nobody to ask; it names the option that answers.

    Raises:
        NeedsAttention: there is nobody to ask.
    """
    if as_json or not (on_terminal() and sys.stdin.isatty()):
        raise NeedsAttention(refusal, reason=Reason.MISCONFIGURED)
    return typer.confirm(question)


def say_files(paths: Sequence[str], what: str) -> None:
    """Tell what became of some files, and which."""
    say(f"{count_of(len(paths), 'file')} {what}:")
    for one in paths:
        say(escape(one), indent=2)
