"""Who graphsim is: its secret, tenant, app and person, kept across restarts."""

from __future__ import annotations

import os
import secrets
import uuid
from typing import TYPE_CHECKING

import msgspec

from graphsim.tenancy import Directory

if TYPE_CHECKING:
    from pathlib import Path

DIRECTORY_FIELDS = ("tenant_id", "client_id", "client_secret", "user_id", "user_name")


class Identity(msgspec.Struct):
    """What a state folder remembers, so that clients survive a restart of graphsim."""

    secret: bytes
    tenant_id: str
    client_id: str
    client_secret: str
    user_id: str
    user_name: str = "owner@graphsim.invalid"

    def directory(self, *, personal: bool = False) -> Directory:
        """Return the tenant of this identity; ``personal`` for one person's own account."""
        own = {name: getattr(self, name) for name in DIRECTORY_FIELDS}
        return Directory(**own, is_personal=personal)


def remembered_identity(state: Path) -> Identity:
    """Return the identity kept in a state folder, making it at the first call."""
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = state / "identity.json"
    if path.exists():
        return msgspec.json.decode(path.read_bytes(), type=Identity)
    tenant, client, user = (
        str(uuid.UUID(bytes=secrets.token_bytes(16), version=4)) for _ in range(3)
    )
    identity = Identity(secrets.token_bytes(32), tenant, client, secrets.token_urlsafe(24), user)
    draft = path.with_suffix(f".{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_bytes(msgspec.json.encode(identity))
    draft.replace(path)
    return identity
