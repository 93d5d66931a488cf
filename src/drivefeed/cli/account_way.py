"""The ways in which an account can sign in, as they were typed, and what each brings."""

from __future__ import annotations

import asyncio
import errno
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

from drivefeed.catalog.accounts import SignInKind
from drivefeed.catalog.credentials import CredentialKind
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from drivefeed.secrets.certificates import Certificate
    from drivefeed.sources.graph.sign_in import SignedIn

_LARGEST_SECRET = 64 * 1024
_SECRET_FILE = "secret file"  # noqa: S105 - names a file


@dataclass(frozen=True, slots=True)
class Way:
    """Options that say how an account signs in; one of them, and what goes with it."""

    secret_file: Path | None = None
    secret_stdin: bool = False
    certificate: Path | None = None
    password_stdin: bool = False
    make_certificate: bool = False
    workload_token_file: Path | None = None
    device: bool = False
    browser: bool = False
    expires: datetime | None = None

    @property
    def chosen(self) -> str | None:
        """The option that was given.

        Raises:
            typer.BadParameter: several were, or one that belongs to another.
        """
        given = [
            option
            for option, value in (
                ("--secret-file", self.secret_file),
                ("--secret-stdin", self.secret_stdin),
                ("--certificate", self.certificate),
                ("--make-certificate", self.make_certificate),
                ("--workload-token-file", self.workload_token_file),
                ("--device", self.device),
                ("--browser", self.browser),
            )
            if value
        ]
        if len(given) > 1:
            raise typer.BadParameter(f"Say only one of {' and '.join(given)}.")
        if self.password_stdin and self.certificate is None:
            raise typer.BadParameter("--password-stdin goes with --certificate.")
        if self.expires is not None and given and not given[0].startswith("--secret"):
            raise typer.BadParameter("--expires goes with a client secret.")
        return given[0] if given else None

    @property
    def is_personal(self) -> bool:
        """Whether a person signs in."""
        return self.device or self.browser


@dataclass(frozen=True, slots=True)
class Brought:
    """What a way of signing in brings: columns of the account, and what is sealed.

    Attributes:
        certificate: to be told about, where there is one.
    """

    values: dict[str, Any]
    credential: tuple[CredentialKind, bytes] | None = field(default=None, repr=False)
    certificate: Certificate | None = None


async def bring(
    way: Way,
    *,
    name: str,
    now: int,
    sign_in: Callable[[], Awaitable[SignedIn]],
) -> Brought:
    """Do what the way asks for: read a secret or a certificate, make one, or have somebody sign in.

    Args:
        name: of the account.
        now: milliseconds since the epoch.
        sign_in: has a person sign in.

    Raises:
        NeedsAttention: it cannot be read, is refused, or has ended.
    """
    match way.chosen:
        case "--secret-file" | "--secret-stdin":
            return _secret(way, now)
        case "--certificate" | "--make-certificate":
            return await asyncio.to_thread(_certificate, way, name, now)
        case "--workload-token-file":
            assert way.workload_token_file is not None
            path = way.workload_token_file.absolute()
            _read(path, "token file")
            return Brought(_columns(SignInKind.WORKLOAD, token_file=str(path)))
        case _:
            found = await sign_in()
            return Brought(
                _columns(
                    SignInKind.USER,
                    user_id=found.user.home_account_id,
                    user_name=found.user.user_name,
                ),
                (CredentialKind.TOKENS, found.cache.encode()),
            )


def _columns(kind: SignInKind, **more: Any) -> dict[str, Any]:
    """Return the columns of a way, with those of every other way emptied."""
    nothing = dict.fromkeys(("token_file", "user_id", "user_name", "expires_at"))
    return {"sign_in": kind, **nothing, **more}


def _secret(way: Way, now: int) -> Brought:
    if way.secret_file is not None:
        words = _read(way.secret_file, _SECRET_FILE).decode("utf-8", "replace").strip()
    else:
        words = read_hidden("Client secret")
    if not words or any(one.isspace() for one in words):
        raise _refused(
            "There is no client secret, or there is more than that. Give the secret's value alone, "
            "on one line."
        )
    ends = way.expires
    expires_at = int(ends.replace(tzinfo=UTC).timestamp() * 1000) if ends else None
    if expires_at is not None and expires_at <= now:
        raise _refused("The client secret has ended already, by the day that --expires names.")
    values = _columns(SignInKind.SECRET, expires_at=expires_at)
    return Brought(values, (CredentialKind.SECRET, words.encode()))


def _certificate(way: Way, name: str, now: int) -> Brought:
    from drivefeed.secrets.certificates import make_certificate, read_certificate

    if way.certificate is None:
        made = make_certificate(name, now=now)
    else:
        password = read_hidden("Password of the file").encode() if way.password_stdin else None
        made = read_certificate(_read(way.certificate, "certificate file"), password)
        if made.expires_at <= now:
            raise _refused("The certificate has ended already. Bring or make a new one.")
    values = _columns(SignInKind.CERTIFICATE, expires_at=made.expires_at)
    return Brought(values, (CredentialKind.CERTIFICATE, made.pem.encode()), made)


def read_hidden(what: str) -> str:
    """Read a secret from standard input; from a terminal without showing it."""
    if sys.stdin.isatty():
        from getpass import getpass

        return getpass(f"{what}: ").strip()
    return sys.stdin.readline(_LARGEST_SECRET).strip()


def _read(path: Path, what: str) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST_SECRET)
    except OSError as error:
        if what == _SECRET_FILE and error.errno in {errno.ENOENT, errno.ENAMETOOLONG}:
            # Where a file is asked for, some type the secret itself.
            raise _refused(
                "The secret file is not there. Give the name of a file, never the secret itself; "
                "what was typed is not repeated here, in case it was one."
            ) from None
        raise _refused(f"The {what} '{path}' cannot be read: {error.strerror}.") from None


def _refused(words: str) -> NeedsAttention:
    return NeedsAttention(words, reason=Reason.MISCONFIGURED)
