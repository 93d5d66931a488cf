"""What is asked of ``backend check`` that cannot be: the command is blamed, and no backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.commands import run_command, said_in_frame

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (("--documents", "nonsense"), 2, "'nonsense' is no URL"),
        (("--documents", "http://127.0.0.1:99999"), 2, "is no URL"),
        (("--documents", "http://:80"), 2, "is no URL"),
        (("--listen", "0.0.0.0"), 2, "Say with --documents"),
        (("--listen", "::"), 2, "Say with --documents"),
        (("--listen", "203.0.113.9"), 3, "cannot be served on 203.0.113.9 port of any number"),
        (("--listen", "no host at all"), 3, "cannot be served on no host at all"),
        (("--store-key", ""), 2, "1 to 1024 characters"),
        (("--store-key", "k" * 1025), 2, "1 to 1024 characters"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    tmp_path: Path, more: tuple[str, ...], code: int, said: str
) -> None:
    done = run_command("backend", "check", "http://127.0.0.1:9", *more, cwd=tmp_path, ok=[code])
    words = said_in_frame(done.stderr)
    assert said in words
    assert "Traceback" not in words
    assert not done.stdout
