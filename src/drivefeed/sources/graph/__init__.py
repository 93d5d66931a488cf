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
from drivefeed.sources.graph.budget import Budget, Gate, Lane
from drivefeed.sources.graph.budget_gate import LocalGate
from drivefeed.sources.graph.gates import Gates
from drivefeed.sources.graph.source import GraphSource

__all__ = [
    "Budget",
    "ClientCertificate",
    "ClientSecret",
    "Gate",
    "Gates",
    "GraphAccount",
    "GraphSource",
    "Lane",
    "LocalGate",
    "QuickXor",
    "SignedInUser",
    "WorkloadIdentity",
]
