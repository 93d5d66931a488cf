"""Why an address leads to no folder, and what to do: one sentence for each case."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph.permissions import opens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drivefeed.sources.graph.account import GraphAccount
    from drivefeed.sources.graph.browse import Library, Site
    from drivefeed.sources.graph.looking import Look, Refused

_LOCKED = 423
_FORBIDDEN = 403
_CLOUD_NAMES = {
    "global": "the worldwide cloud",
    "us_l4": "the US Government L4 (GCC High) cloud",
    "us_l5": "the US Government L5 (DoD) cloud",
    "china": "the cloud in China operated by 21Vianet",
}


def other_cloud(cloud: str, account: GraphAccount) -> NeedsAttention:
    """The address belongs to another of Microsoft's clouds."""
    there, here = _CLOUD_NAMES.get(cloud, cloud), _CLOUD_NAMES.get(account.cloud, account.cloud)
    return NeedsAttention(
        f"The address belongs to {there}, and the account '{account.name}' signs in to {here}; "
        "sign-ins do not cross from one to the other. Add an account of that cloud, or paste an "
        "address of this one.",
        reason=Reason.MISCONFIGURED,
    )


def personal_address(account: GraphAccount) -> NeedsAttention:
    """A work account cannot read a personal OneDrive."""
    return NeedsAttention(
        "The address belongs to a personal OneDrive, and the account "
        f"'{account.name}' is one of an organization. Add an account that signs in with the "
        "personal Microsoft account.",
        reason=Reason.MISCONFIGURED,
    )


def work_address(account: GraphAccount) -> NeedsAttention:
    """A personal account cannot read SharePoint."""
    return NeedsAttention(
        f"The address belongs to an organization's SharePoint, and the account '{account.name}' "
        "is a personal one. Add an account of that organization.",
        reason=Reason.MISCONFIGURED,
    )


def other_tenant(host: str, own: str, account: GraphAccount) -> NeedsAttention:
    """The host belongs to another organization."""
    return NeedsAttention(
        f"'{host}' belongs to another organization than the account '{account.name}', whose "
        f"SharePoint is at '{own}'. Add an account of that organization, or paste an address "
        "of this one.",
        reason=Reason.MISCONFIGURED,
    )


def no_site(url: str) -> NeedsAttention:
    """There is no such site."""
    return NeedsAttention(
        f"There is no site at '{url}'. It may have been renamed or deleted: open it in the browser "
        "and copy its address again.",
        reason=Reason.FOLDER_GONE,
    )


def site_not_permitted(
    url: str, account: GraphAccount, permissions: frozenset[str] | None
) -> NeedsAttention:
    """The site is not shown to the account.

    Args:
        permissions: what its token says it may do; None where it does not say.
    """
    opened = "all" if permissions is None else opens(permissions)
    reason = Reason.ACCESS_DENIED
    if account.is_delegated:
        cure = "Ask its owner to make that person a member."
    elif opened == "selected":
        reason = Reason.GRANT_MISSING
        cure = (
            "The app has the permission Sites.Selected: an administrator has to grant it this very "
            "site."
        )
    elif opened == "nothing":
        reason = Reason.CONSENT_MISSING
        cure = "The app needs Sites.Read.All, Files.Read.All or Sites.Selected, with admin consent."
    else:
        cure = (
            "The app's permissions would open it, so it may be restricted: ask a SharePoint "
            "administrator."
        )
    return NeedsAttention(
        f"The account '{account.name}' may not read '{url}'. {cure}", reason=reason
    )


def someone_elses(url: str, account: GraphAccount) -> NeedsAttention:
    """It lies in a OneDrive that the account may not read."""
    cure = (
        "Ask its owner to share the folder with that person, or sign in as the owner."
        if account.is_delegated
        else "The app needs the permission Files.Read.All, with admin consent."
    )
    return NeedsAttention(
        f"'{url}' lies in somebody's own OneDrive, and the account '{account.name}' may not read "
        f"it. {cure}",
        reason=Reason.ACCESS_DENIED,
    )


def locked(what: str) -> NeedsAttention:
    """An administrator locked or archived the site."""
    return NeedsAttention(
        f"{what} is locked or archived. A SharePoint administrator has to unlock it first.",
        reason=Reason.SITE_LOCKED,
    )


def may_not_list_sites(account: GraphAccount) -> NeedsAttention:
    """The account may not search for sites."""
    cure = (
        "The sign-in needs the permission Sites.Read.All"
        if account.is_delegated
        else "To list them, an app needs Sites.Read.All; with Sites.Selected it is shown at most "
        "the sites it was granted"
    )
    return NeedsAttention(
        f"The account '{account.name}' is shown no sites. {cure}; if you know the site, paste "
        "its address: 'drivefeed browse --site https://…'.",
        reason=Reason.ACCESS_DENIED,
    )


async def not_shown(refusal: Refused, url: str, look: Look) -> NeedsAttention:
    """A site or folder that was asked for by its address, in words for its refusal."""
    if refusal.status == _LOCKED:
        return locked(f"'{url}'")
    if refusal.status == _FORBIDDEN:
        return site_not_permitted(url, look.account, await look.permissions())
    return no_site(url)


def no_libraries(site: Site) -> NeedsAttention:
    """The site shows no library."""
    return NeedsAttention(
        f"The site '{site.name}' has no document library that this account may read.",
        reason=Reason.FOLDER_GONE,
    )


def which_library(site: Site, found: Sequence[Library]) -> NeedsAttention:
    """The address of a site with several libraries."""
    return NeedsAttention(
        f"The site '{site.name}' has {len(found)} document libraries. Paste the address of one of "
        f"them:\n{_listed(found)}",
        reason=Reason.MISCONFIGURED,
    )


def no_such_library(site: Site, name: str, found: Sequence[Library]) -> NeedsAttention:
    """The site has no library of that name."""
    known = f" It has these:\n{_listed(found)}" if found else ""
    return NeedsAttention(
        f"The site '{site.name}' has no document library '{name}'.{known}",
        reason=Reason.FOLDER_GONE,
    )


def _listed(found: Sequence[Library]) -> str:
    return "\n".join(f"  {one.name}: {one.web_url}" for one in found)


def no_folder(library: Library, above: Sequence[str], missing: str) -> NeedsAttention:
    """A folder of the path does not exist; ``above`` does."""
    place = f"the folder '{'/'.join(above)}' of " if above else ""
    return NeedsAttention(
        f"There is no '{missing}' in {place}the library '{library.name}'. It may have been "
        "renamed, moved or deleted: open the folder in the browser and copy its address again.",
        reason=Reason.FOLDER_GONE,
    )


def is_a_file(name: str, folder_url: str) -> NeedsAttention:
    """The address of a file."""
    return NeedsAttention(
        f"'{name}' is a file; a connection follows a folder. Its folder is at {folder_url}",
        reason=Reason.MISCONFIGURED,
    )


def is_a_package(name: str) -> NeedsAttention:
    """The address of a OneNote notebook."""
    return NeedsAttention(
        f"'{name}' is a OneNote notebook, which has no files that could be read. Connect the "
        "folder it lies in; notebooks there are passed over.",
        reason=Reason.PACKAGE,
    )


def is_a_shortcut(name: str, target: str) -> NeedsAttention:
    """The address of a shortcut to another library."""
    where = f": {target}" if target else ". Open it in the browser and copy the address there."
    return NeedsAttention(
        f"'{name}' is a shortcut to a folder in another library. Paste the address of the folder "
        f"itself{where}",
        reason=Reason.SHORTCUT,
    )


def is_no_folder(name: str) -> NeedsAttention:
    """The address of something that Graph calls neither folder nor file."""
    return NeedsAttention(
        f"'{name}' is no folder (Microsoft Graph does not say what it is). Connect the folder it "
        "lies in.",
        reason=Reason.UNKNOWN_KIND,
    )


def dead_link(account: GraphAccount) -> NeedsAttention:
    """A sharing link that leads nowhere, or not for this account."""
    return NeedsAttention(
        f"The sharing link leads nowhere for the account '{account.name}': it was revoked or has "
        "expired, what it shared was deleted, or it was shared with other people. Open the folder "
        "itself in the browser and copy the address there.",
        reason=Reason.ACCESS_DENIED,
    )


def only_the_link(name: str, account: GraphAccount) -> NeedsAttention:
    """The link opens one folder of a drive that the account may not read."""
    return NeedsAttention(
        f"The link opens '{name}' for the account '{account.name}', but not the library it lies "
        "in, whose changes have to be followed. Use an account that may read the library: its "
        "owner's, a member's of the site, or an app's.",
        reason=Reason.ACCESS_DENIED,
    )


def app_has_none(account: GraphAccount) -> NeedsAttention:
    """An app has no OneDrive of its own."""
    return NeedsAttention(
        f"The account '{account.name}' signs in as an app, which has no OneDrive of its own. Say "
        "whose it is: 'somebody@your-domain:/Folder', or the address that the person sees in the "
        "browser.",
        reason=Reason.MISCONFIGURED,
    )


def no_onedrive(whose: str) -> NeedsAttention:
    """The person is unknown, or never opened OneDrive."""
    return NeedsAttention(
        f"{whose} has no OneDrive, or there is no such person. A OneDrive is made when its owner "
        "opens it for the first time, with a licence for it: check the name, and let them open "
        "OneDrive once.",
        reason=Reason.NO_ONEDRIVE,
    )


def user_not_permitted(whose: str, account: GraphAccount) -> NeedsAttention:
    """The account may not read somebody's OneDrive."""
    return NeedsAttention(
        f"The account '{account.name}' may not read the OneDrive of {whose}. "
        + (
            "Ask them to share the folder with the person who signed in."
            if account.is_delegated
            else "The app needs the permission Files.Read.All, with admin consent."
        ),
        reason=Reason.ACCESS_DENIED,
    )


def no_drive(drive_id: str) -> NeedsAttention:
    """No drive has the id, or the account may not know."""
    return NeedsAttention(
        f"There is no drive '{drive_id}' that this account may read. Check the id, or paste the "
        "folder's address from the browser.",
        reason=Reason.DRIVE_GONE,
    )
