"""The secret that is shared with a backend, as commands are given it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import typer

from drivefeed.backends.signing import Credential
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.domain.redact import hide

if TYPE_CHECKING:
    from pathlib import Path

VARIABLE: Final = "DRIVEFEED_BACKEND_SECRET"
LEAST: Final = 16


def credential_of(file: Path | None, auth: str) -> Credential | None:
    """Return the credential, or None where no secret was given.

    Raises:
        NeedsAttention: the file cannot be read, or what is in it is too short.
    """
    if auth not in {"hmac", "bearer"}:
        raise typer.BadParameter("--auth is hmac or bearer.")
    try:
        text = os.environ.get(VARIABLE, "") if file is None else file.read_text(encoding="utf-8")
    except FileNotFoundError:
        # Its name is not repeated: where a file is asked for, some type the secret itself.
        raise NeedsAttention(
            "The secret file is not there. Give the name of a file that holds the secret.",
            reason=Reason.MISCONFIGURED,
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise NeedsAttention(
            f"The secret file '{file}' cannot be read ({error}).", reason=Reason.MISCONFIGURED
        ) from error
    secret = text.strip()
    if not secret and file is None:
        return None
    if len(secret) < LEAST:
        raise NeedsAttention(
            f"The secret has fewer than {LEAST} characters. Make one with 'openssl rand -hex 32'.",
            reason=Reason.MISCONFIGURED,
        )
    hide(secret)
    return Credential(secret, "bearer" if auth == "bearer" else "hmac")
