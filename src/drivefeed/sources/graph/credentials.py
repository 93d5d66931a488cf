"""azure-identity's credentials for apps: which one fits how an account signs in."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph.account import (
    CLOUDS,
    ClientCertificate,
    ClientSecret,
    SignedInUser,
    WorkloadIdentity,
)

if TYPE_CHECKING:
    from azure.core.credentials_async import AsyncTokenCredential

    from drivefeed.sources.graph.account import GraphAccount


def app_credential(account: GraphAccount) -> AsyncTokenCredential:
    """Make the credential of an app; imports azure-identity, so call this in a thread.

    Raises:
        NeedsAttention: the account is incomplete, or its certificate cannot be used.
        TypeError: a person signed in, which azure-identity cannot serve for a daemon.
    """
    quiet = logging.getLogger("azure")
    if quiet.level == logging.NOTSET:
        quiet.setLevel(logging.ERROR)
    try:
        return _made(account)
    except ValueError as error:
        raise NeedsAttention(
            f"The sign-in of account '{account.name}' is incomplete: {error}",
            reason=Reason.SIGN_IN_INCOMPLETE,
        ) from error


def _made(account: GraphAccount) -> AsyncTokenCredential:
    from azure.identity.aio import (
        CertificateCredential,
        ClientSecretCredential,
        WorkloadIdentityCredential,
    )

    from drivefeed.sources.graph.token_transport import TrustingTransport

    official = account.login_url in {cloud.login for cloud in CLOUDS.values()}
    options: dict[str, Any] = {
        "authority": account.login_url,
        # Discovery asks Microsoft whether the authority is one of its own.
        "disable_instance_discovery": not official,
        "transport": TrustingTransport(account.outbound.tls(account.ca_file)),
        "proxies": account.outbound.proxies_for(account.login_url),
        "connection_timeout": 15,
        "read_timeout": 30,
        "retry_total": 1,
    }
    tenant, client = account.tenant_id, account.client_id
    match account.sign_in:
        case ClientSecret(secret=secret):
            return ClientSecretCredential(tenant, client, secret, **options)
        case ClientCertificate(pem=pem):
            data = pem.encode()
            return CertificateCredential(tenant, client, certificate_data=data, **options)
        case WorkloadIdentity(token_file=path):
            return WorkloadIdentityCredential(
                tenant_id=tenant, client_id=client, token_file_path=path, **options
            )
        case SignedInUser():
            raise TypeError("A person's sign-in does not come from azure-identity.")
