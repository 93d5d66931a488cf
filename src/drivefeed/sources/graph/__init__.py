"""Microsoft Graph as a :class:`drivefeed.ports.Source`.

Importing this package stays cheap: msgraph-sdk, kiota and azure-identity are imported in a thread
when the first request of an account is made.
"""

from drivefeed.domain.quickxor import QuickXor
from drivefeed.sources.graph.account import (
    ClientCertificate,
    ClientSecret,
    GraphAccount,
    SignedInUser,
    WorkloadIdentity,
)
from drivefeed.sources.graph.budget import Gate, Lane, LocalGate
from drivefeed.sources.graph.source import GraphSource

__all__ = [
    "ClientCertificate",
    "ClientSecret",
    "Gate",
    "GraphAccount",
    "GraphSource",
    "Lane",
    "LocalGate",
    "QuickXor",
    "SignedInUser",
    "WorkloadIdentity",
]
