"""Where keys come from: the environment, a file, or a command.

Each gives the same text: keys of 32 bytes in base64, one a line or with commas between. The first
seals; all of them open.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.secrets.sealing import KEY_BYTES, Key

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

FILE_NAME = "secret.key"
"""Of the key file in the data folder."""
VARIABLE = "DRIVEFEED_SECRET_KEY"
_COMMAND_SECONDS = 30.0
_OTHERS = 0o077


class KeyPlace(Protocol):
    """Somewhere that keys are kept."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    def stamp(self) -> Hashable:
        """Return something that changes whenever the keys may have changed; cheap."""
        ...

    def load(self) -> list[Key]:
        """Return the keys, the one that seals first; may block.

        Raises:
            NeedsAttention: there is none, or they cannot be read.
        """
        ...


class GivenKeys:
    """Keys that the settings hold, mostly from the environment."""

    name = VARIABLE

    def __init__(self, text: str) -> None:
        self._text = text

    def stamp(self) -> Hashable:
        """Return the same always: a process's environment does not change."""
        return None

    def load(self) -> list[Key]:
        """Return the keys; see :class:`KeyPlace`."""
        return keys_in(self._text, self.name)


class KeyCommand:
    """Keys that a command prints, as tools for secrets do."""

    def __init__(self, command: str) -> None:
        self._command = command
        self.name = f"the command '{command.split(maxsplit=1)[0]}' of secret_key_command"

    def stamp(self) -> Hashable:
        """Return the same always: the command is asked once, and for a key that is not known."""
        return None

    def load(self) -> list[Key]:
        """Run the command; see :class:`KeyPlace`. Its output goes into no message."""
        try:
            done = subprocess.run(  # noqa: S603 - the operator's own command, without a shell
                shlex.split(self._command),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_COMMAND_SECONDS,
                check=False,
            )
        except (OSError, ValueError) as error:
            raise _trouble(f"{self._begin} cannot be run: {error}.") from None
        except subprocess.TimeoutExpired:
            raise _trouble(
                f"{self._begin} did not end within {_COMMAND_SECONDS:.0f} seconds."
            ) from None
        if done.returncode != 0:
            raise _trouble(f"{self._begin} ended with exit code {done.returncode}.")
        return keys_in(done.stdout.decode("utf-8", "replace"), self.name)

    @property
    def _begin(self) -> str:
        return f"{self.name[0].upper()}{self.name[1:]}"


class KeyFile:
    """Keys in a file that only its owner may read.

    Reading never makes the file: a lost one would be replaced by a key that opens nothing.

    Args:
        path: where it is.
        may_make: whether the first secret of a catalog makes it; only where that lies beside it.
    """

    def __init__(self, path: Path, *, may_make: bool) -> None:
        self.path = path
        self.name = f"the key file '{path}'"
        self.may_make = may_make

    def stamp(self) -> Hashable:
        """Return what changes when the file is replaced."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return (found.st_mtime_ns, found.st_ino, found.st_size)

    def load(self) -> list[Key]:
        """Read the file; see :class:`KeyPlace`."""
        try:
            mode = self.path.stat().st_mode
            text = self.path.read_text(encoding="ascii", errors="replace")
        except FileNotFoundError:
            if not self.may_make:
                raise _no_key(f"there is no file '{self.path}'") from None
            raise _trouble(
                f"The key file '{self.path}' is not there. If it was lost, bring it back from its "
                "copy; a new installation gets one with 'drivefeed init'."
            ) from None
        except OSError as error:
            raise _trouble(
                f"The key file '{self.path}' cannot be read: {error.strerror}."
            ) from None
        if mode & _OTHERS:
            raise _trouble(
                f"The key file '{self.path}' can be read by others than its owner. Run "
                f"'chmod 600 {shlex.quote(str(self.path))}', and consider a new key with "
                "'drivefeed secrets rotate --new-key'."
            )
        return keys_in(text, self.name)

    def make(self) -> bool:
        """Make the file with one key, unless it is there; tell whether it was made."""
        draft = self._draft([Key.new()])
        try:
            os.link(draft, self.path)
        except FileExistsError:
            return False
        except OSError as error:
            raise _trouble(
                f"The key file '{self.path}' cannot be made: {error.strerror}."
            ) from None
        finally:
            draft.unlink()
        return True

    def replace(self, keys: Sequence[Key]) -> None:
        """Write other keys into the file, all at once."""
        self._draft(keys).replace(self.path)

    def _draft(self, keys: Sequence[Key]) -> Path:
        lines = [base64.b64encode(key.secret).decode() for key in keys]
        try:
            fd, name = tempfile.mkstemp(prefix=".key-", dir=self.path.parent)  # mode 0600
        except OSError as error:
            raise _trouble(
                f"A key file cannot be made in '{self.path.parent}': {error.strerror}."
            ) from None
        with os.fdopen(fd, "w", encoding="ascii") as draft:
            draft.write("\n".join(lines) + "\n")
            draft.flush()
            os.fsync(draft.fileno())
        return Path(name)


class NoPlace:
    """Nothing was said about keys, and a file beside the catalog would help nobody."""

    name = "no place"

    def stamp(self) -> Hashable:
        """Return the same always."""
        return None

    def load(self) -> list[Key]:
        """Say that there is no key; see :class:`KeyPlace`."""
        raise _no_key("neither the settings nor the environment name one")


def place_for(
    *, given: str | None, file: Path | None, command: str, beside: Path | None
) -> KeyPlace:
    """Return the place that settings name: given keys, else a file, else a command.

    Args:
        given: the keys themselves.
        file: a file with keys, which must be there.
        command: prints keys.
        beside: the data folder, where the catalog lies in it: a key file is made there.
    """
    if given:
        return GivenKeys(given)
    if file is not None:
        return KeyFile(file, may_make=False)
    if command.strip():
        return KeyCommand(command)
    if beside is not None:
        return KeyFile(beside / FILE_NAME, may_make=True)
    return NoPlace()


def keys_in(text: str, place: str) -> list[Key]:
    """Read keys from text.

    Raises:
        NeedsAttention: there is none, or one is not 32 bytes in base64; no key is quoted.
    """
    found: list[Key] = []
    for number, word in enumerate(re.split(r"[\s,]+", text.strip()), start=1):
        if not word:
            continue
        try:
            secret = base64.b64decode(word.replace("-", "+").replace("_", "/"), validate=True)
        except (binascii.Error, ValueError):
            secret = b""
        if len(secret) != KEY_BYTES:
            raise _trouble(
                f"Key {number} in {place} is not {KEY_BYTES} bytes in base64. Make one with "
                "'openssl rand -base64 32'."
            )
        found.append(Key(secret))
    if not found:
        raise _no_key(f"{place} holds none")
    return found


def _no_key(why: str) -> NeedsAttention:
    return _trouble(
        f"There is no key to seal and open secrets with: {why}. Make one with 'openssl rand "
        f"-base64 32' and set {VARIABLE}, secret_key_file or secret_key_command; all processes of "
        "an installation need the same key."
    )


def _trouble(words: str) -> NeedsAttention:
    return NeedsAttention(words, reason=Reason.SECRETS_LOCKED)
