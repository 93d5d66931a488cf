"""Refusals that tell more together with what else is known: the token, the person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.domain.errors import DrivefeedError, NeedsAttention, NotFound
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph.errors import DELTA_SCENES, Scene
from drivefeed.sources.graph.permissions import opens

if TYPE_CHECKING:
    from drivefeed.sources.graph.claims import TokenClaims
    from drivefeed.sources.graph.errors import Refusal


def forbidden(refused: NeedsAttention, claims: TokenClaims | None, scene: Scene) -> NeedsAttention:
    """Say of a 403 what is missing, where the token's permissions tell.

    Args:
        refused: the refusal as translated from the answer alone.
        claims: what the token said; None where it could not be read.
        scene: what was asked for.
    """
    if refused.reason is not Reason.ACCESS_DENIED:
        return refused
    opened = opens(claims.permissions) if claims else "all"
    if opened == "selected":
        return NeedsAttention(
            f"The app may read selected sites only, and this one was not granted to it. {refused}",
            reason=Reason.GRANT_MISSING,
        )
    if opened == "nothing" and claims:
        held = ", ".join(sorted(claims.permissions)) or "none at all"
        return NeedsAttention(
            f"The app has no permission to read files (its permissions: {held}). {refused}",
            reason=Reason.CONSENT_MISSING,
        )
    if scene in DELTA_SCENES and claims:
        # One report (microsoft-graph-docs-contrib#693): labelled items wanted full control.
        return NeedsAttention(
            f"{refused} The app may read files, so this place has rules of its own; retention "
            "labels in a library were reported to do this.",
            reason=refused.reason,
        )
    return refused


def no_onedrive(refusal: Refusal, who: str) -> DrivefeedError | None:
    """Return the error for a person's OneDrive that is not there; None for other refusals.

    Two answers were reported for a person without one: 404 (onedrive-api-docs#965) and 400
    (msgraph-sdk-dotnet#1463); a person who does not exist at all has a code of its own.
    """
    if refusal.status not in {400, 404}:
        return None
    if "request_resourcenotfound" in refusal.codes:
        return NotFound(f"There is nobody called '{who}' in the tenant. {refusal.message}")
    text = refusal.sentence(Scene.DRIVE)
    return NeedsAttention(f"'{who}' has no OneDrive. {text}", reason=Reason.NO_ONEDRIVE)
