"""A new certificate beside what an account signs in by: it takes the place once it was accepted.

Microsoft knows a certificate only after somebody has uploaded its public part. Until a sign-in
with the new one succeeded, the account keeps what it had.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, select, update

from drivefeed.catalog.access_tables import credentials
from drivefeed.catalog.account_states import AccountState
from drivefeed.catalog.accounts import SignInKind
from drivefeed.catalog.audit_log import record
from drivefeed.catalog.credentials import CredentialKind, put_in
from drivefeed.catalog.tables import accounts

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from drivefeed.secrets.ring import KeyRing


async def offer_certificate(
    catalog: Catalog, ring: KeyRing, account_id: str, *, pem: bytes, actor: str
) -> None:
    """Keep a new certificate beside the account's sign-in, in place of an older offer.

    Args:
        pem: private key and certificate.
        actor: who does it, for the audit log.

    Raises:
        NeedsAttention: there is no key to seal with.
    """
    async with catalog.write("account.offer") as connection:
        rows = await connection.execute(
            update(accounts)
            .where(accounts.c.id == account_id)
            .values(revision=accounts.c.revision + 1)
            .returning(accounts.c.org_id)
        )
        org_id = rows.scalar_one()
        await put_in(connection, catalog, ring, account_id, kind=CredentialKind.PENDING, plain=pem)
        await record(
            connection,
            org_id=org_id,
            actor=actor,
            action="account.certificate_offered",
            subject_id=account_id,
        )


async def accept_certificate(
    catalog: Catalog, account_id: str, *, revision: int, expires_at: int
) -> bool:
    """Let an account sign in by its new certificate alone; tell whether this call did that.

    Args:
        revision: of the account whose new certificate was tried; after another change of the
            account nothing is done.
        expires_at: when the new certificate ends, in milliseconds since the epoch.
    """
    async with catalog.write("account.accept") as connection:
        found = await connection.execute(
            select(accounts.c.org_id, accounts.c.sign_in, accounts.c.expires_at)
            .join(credentials, credentials.c.account_id == accounts.c.id)
            .where(
                accounts.c.id == account_id,
                accounts.c.revision == revision,
                credentials.c.kind == CredentialKind.PENDING,
            )
        )
        before = found.one_or_none()
        if before is None:
            return False
        await connection.execute(
            delete(credentials).where(
                credentials.c.account_id == account_id,
                credentials.c.kind != CredentialKind.PENDING,
            )
        )
        # What is sealed is bound to the row's id, which stays.
        await connection.execute(
            update(credentials)
            .where(credentials.c.account_id == account_id)
            .values(kind=CredentialKind.CERTIFICATE)
        )
        await connection.execute(
            update(accounts)
            .where(accounts.c.id == account_id)
            .values(
                sign_in=SignInKind.CERTIFICATE,
                token_file=None,
                expires_at=expires_at,
                state=AccountState.OK,
                reason=None,
                detail=None,
                revision=accounts.c.revision + 1,
            )
        )
        await record(
            connection,
            org_id=before.org_id,
            actor="drivefeed",
            action="account.certificate_accepted",
            subject_id=account_id,
            before={"sign_in": before.sign_in, "expires_at": before.expires_at},
            after={"sign_in": SignInKind.CERTIFICATE, "expires_at": expires_at},
        )
    return True
