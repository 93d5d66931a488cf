"""Scopes: what was asked for, what was consented to, and what of it reaches a token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphsim.entra_codes import EntraError
from graphsim.tenancy import DEFAULT_ROLES

if TYPE_CHECKING:
    from graphsim.tenancy import App

_OPENID = frozenset({"openid", "profile", "email", "offline_access"})
DEFAULT = ".default"


def permissions_of(scope: str) -> set[str]:
    """Return the permissions in a scope, without their resource and OpenID's own."""
    return {one.rpartition("/")[2] for one in scope.split()} - _OPENID - {DEFAULT}


def consented(app: App, wanted: str, before: str) -> str:
    """Return the scope to grant: ``.default`` stands for what was consented to before.

    Raises:
        EntraError: 65001, for a permission without consent.
    """
    scope = wanted
    if DEFAULT in {one.rpartition("/")[2] for one in wanted.split()}:
        known = set(before.split()) | set(wanted.split())
        scope = " ".join(sorted(known))
    if app.scopes is not None:
        missing = permissions_of(scope) - app.scopes
        if missing or not app.scopes:
            raise EntraError(65001, f"(scope {' '.join(sorted(missing))})")
    return scope


def default_scopes(app: App, scope: str) -> set[str]:
    """Return the permissions of a token for a scope that was granted."""
    named = permissions_of(scope)
    is_default = DEFAULT in {one.rpartition("/")[2] for one in scope.split()}
    if named or not is_default:
        return named
    return set(DEFAULT_ROLES) if app.scopes is None else set(app.scopes)
