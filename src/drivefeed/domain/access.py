"""Reasons about sign-in and rights: who can cure them, and in which words they are told.

The cure of all of them lies outside of the file that met them. So none of them is a file's fault:
the work waits, asks again from time to time, and goes on where it was.
"""

from __future__ import annotations

from drivefeed.domain.explanation import Explanation, Kind
from drivefeed.domain.reasons import Reason

NEEDS_PERSON = frozenset(
    {Reason.NEEDS_SIGN_IN, Reason.CONDITIONAL_ACCESS, Reason.WRONG_USER, Reason.USER_BLOCKED}
)
"""The person who signed in has to do so again, or their administrator has to let them."""

NEEDS_OPERATOR = frozenset(
    {
        Reason.MISCONFIGURED,
        Reason.SECRET_WRONG,
        Reason.SECRET_EXPIRED,
        Reason.SECRETS_LOCKED,
        Reason.CERTIFICATE_UNKNOWN,
        Reason.FEDERATION_MISSING,
        Reason.TOKEN_FILE_MISSING,
        Reason.SIGN_IN_INCOMPLETE,
        Reason.SIGN_IN_MISDIRECTED,
        Reason.SIGN_IN_REFUSED,
        Reason.CREDENTIAL_REFUSED,
        Reason.PERSON_NOT_ADMITTED,
        Reason.OFFLINE_ACCESS_MISSING,
        Reason.ADDRESS_UNUSABLE,
        Reason.CA_FILE_UNUSABLE,
        Reason.APP_UNKNOWN,
        Reason.TENANT_UNKNOWN,
        Reason.CLOCK_WRONG,
    }
)
"""The account, the app registration or this machine has to be put right."""

NEEDS_CONSENT = frozenset({Reason.CONSENT_MISSING})
"""An administrator of the tenant has to consent to the app's permissions."""

OF_ACCOUNT = NEEDS_PERSON | NEEDS_OPERATOR | NEEDS_CONSENT
"""Reasons that stop everything that is read through an account."""

OF_PLACE = frozenset(
    {Reason.ACCESS_DENIED, Reason.GRANT_MISSING, Reason.NO_ONEDRIVE, Reason.SITE_LOCKED}
)
"""Reasons that stop one drive or site, whoever signs in."""

CURED_WITH_DRIVE = (OF_ACCOUNT | OF_PLACE | {Reason.DRIVE_GONE}) - {
    Reason.MISCONFIGURED,
    Reason.ACCESS_DENIED,
}
"""Where a file waits for one of these, it goes on once its drive answers again.

That a drive is gone is taken back as well: clients were told so of drives that came back.

The two left out are told of single files and of other parts as well.
"""

_A = Kind.ATTENTION
ACCESS_EXPLANATIONS: dict[Reason, Explanation] = {
    Reason.NEEDS_SIGN_IN: Explanation(
        _A,
        "Microsoft no longer accepts the stored sign-in.",
        "Sign in again; everything goes on from where it was.",
    ),
    Reason.MISCONFIGURED: Explanation(
        _A,
        "Something is set in a way that cannot work.",
        "Do what the sentence beside it says; it names the setting, the file or the account.",
    ),
    Reason.ACCESS_DENIED: Explanation(
        _A,
        "Microsoft refuses access to this drive or folder.",
        "Give the app access to it; 'drivefeed probe' names the right that is missing.",
    ),
    Reason.SECRET_WRONG: Explanation(
        _A,
        "Microsoft does not know the client secret of the account.",
        "Store the secret's value (not its id) in the account, or make a new secret for the app.",
    ),
    Reason.SECRET_EXPIRED: Explanation(
        _A,
        "The client secret or certificate of the account has expired.",
        "Make a new one for the app registration and store it in the account.",
    ),
    Reason.SECRETS_LOCKED: Explanation(
        _A,
        "The account's secret is sealed, and no key that is here opens it.",
        "Put the secret key right, as the sentence beside it says; everything goes on by itself.",
    ),
    Reason.CERTIFICATE_UNKNOWN: Explanation(
        _A,
        "The certificate of the account is not registered with the app.",
        "Upload its public part to the app registration, under certificates and secrets.",
    ),
    Reason.FEDERATION_MISSING: Explanation(
        _A,
        "The app does not trust the platform that vouches for this machine.",
        "Add a federated credential with this issuer, subject and audience to the app.",
    ),
    Reason.TOKEN_FILE_MISSING: Explanation(
        _A,
        "The token file, by which the platform vouches for this machine, cannot be read.",
        "Have the platform put it where the account looks for it, readable for the user that runs "
        "drivefeed; or name another file with 'drivefeed account reconnect --workload-token-file'.",
    ),
    Reason.SIGN_IN_INCOMPLETE: Explanation(
        _A,
        "What the account signs in by is not stored here, or cannot be used as it is.",
        "Give the account a new sign-in with 'drivefeed account reconnect'; if the settings own "
        "it, put it right there.",
    ),
    Reason.SIGN_IN_MISDIRECTED: Explanation(
        _A,
        "The sign-in was made out to another app, or to another sign-in service.",
        "Check the account's client id, its cloud and its authority.",
    ),
    Reason.SIGN_IN_REFUSED: Explanation(
        _A,
        "Microsoft does not accept the sign-in as the account asks for it.",
        "Look up Microsoft's words, which stand beside it; tenant, client id and cloud are what "
        "an account can have wrong.",
    ),
    Reason.CREDENTIAL_REFUSED: Explanation(
        _A,
        "Microsoft does not accept what the app proves itself by.",
        "Check that the secret or certificate belongs to this client id, or give it a "
        "new one with 'drivefeed account reconnect'.",
    ),
    Reason.PERSON_NOT_ADMITTED: Explanation(
        _A,
        "The app registration does not let people sign in this way.",
        "Under Authentication, add the platform 'Mobile and desktop applications' with "
        "http://localhost, and allow public client flows.",
    ),
    Reason.OFFLINE_ACCESS_MISSING: Explanation(
        _A,
        "Microsoft gave no refresh token, so drivefeed cannot go on without the person.",
        "Let the app registration have the permission offline_access, and sign in again.",
    ),
    Reason.ADDRESS_UNUSABLE: Explanation(
        _A,
        "The address of the account's sign-in service, or of its Graph, cannot be used.",
        "Give the account an authority and a Graph URL that begin with https://, or none.",
    ),
    Reason.CA_FILE_UNUSABLE: Explanation(
        _A,
        "The file with certificates to trust cannot be read, or holds none.",
        "Put the file back, or name one in PEM: it says '-----BEGIN CERTIFICATE-----'.",
    ),
    Reason.APP_UNKNOWN: Explanation(
        _A,
        "The tenant does not know the app, or has disabled it.",
        "Check the client id and the tenant; an administrator may have to consent to the app.",
    ),
    Reason.TENANT_UNKNOWN: Explanation(
        _A,
        "Microsoft knows no tenant of this name.",
        "Check the account's tenant id or domain, and its cloud.",
    ),
    Reason.CONSENT_MISSING: Explanation(
        _A,
        "Nobody has consented to the permissions that the app needs.",
        "Have an administrator of the tenant grant consent; 'drivefeed registration' writes the "
        "steps for them.",
    ),
    Reason.CONDITIONAL_ACCESS: Explanation(
        _A,
        "A rule of the tenant, such as a second factor, stands in the way of the sign-in.",
        "Sign in again and answer what is asked, or have the tenant's administrator exempt the "
        "app.",
    ),
    Reason.USER_BLOCKED: Explanation(
        _A,
        "The person who signed in is disabled or unknown in the tenant.",
        "Have the account enabled again, or sign in as somebody else who may read the drives.",
    ),
    Reason.WRONG_USER: Explanation(
        _A,
        "Somebody else signed in than the person whose drives are connected.",
        "Sign in as the same person as before, or add another account.",
    ),
    Reason.CLOCK_WRONG: Explanation(
        _A,
        "The clock of this machine differs too much from Microsoft's.",
        "Set the clock, best by a time service; the sign-in works again by itself.",
    ),
    Reason.GRANT_MISSING: Explanation(
        _A,
        "The app may read selected sites only, and this site was not given to it.",
        "Have an administrator grant the app this site; 'drivefeed registration' writes the "
        "command.",
    ),
    Reason.NO_ONEDRIVE: Explanation(
        _A,
        "This person has no OneDrive, or it was never opened.",
        "Have the person open OneDrive once, or have it provisioned; a licence is needed.",
    ),
    Reason.SITE_LOCKED: Explanation(
        _A,
        "The site is locked or archived; its documents here are kept.",
        "Have a SharePoint administrator unlock the site; it goes on by itself.",
    ),
}
