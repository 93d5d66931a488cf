"""The closed list of reasons: why a file was skipped, rejected, held, or waits for a person.

Nothing in drivefeed may invent a reason; a test walks the code for codes that are not on this
list. What each means, and its remedy, is in :mod:`drivefeed.domain.explanations`.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Codes are stable: they appear in the API, in the index and in exports."""

    # The connection does not want the file.
    NOT_A_FILE = "not_a_file"
    TYPE_NOT_INCLUDED = "type_not_included"
    EXCLUDED_BY_FILTER = "excluded_by_filter"
    NOT_INCLUDED_BY_FILTER = "not_included_by_filter"
    IN_SUBFOLDER = "in_subfolder"
    LARGER_THAN_LIMIT = "larger_than_limit"
    OLDER_THAN_LIMIT = "older_than_limit"
    EMPTY_FILE = "empty_file"
    PACKAGE = "package"
    VAULT = "vault"
    SHORTCUT = "shortcut"
    MALWARE = "malware"
    UNKNOWN_KIND = "unknown_kind"
    FORGOTTEN = "forgotten"
    # The file cannot be imported.
    UNSUPPORTED_TYPE = "unsupported_type"
    ENCRYPTED = "encrypted"
    CORRUPT = "corrupt"
    NO_TEXT = "no_text"
    TOO_LARGE = "too_large"
    EXTRACTION_TIMEOUT = "extraction_timeout"
    EXTRACTION_CRASHED = "extraction_crashed"
    OUT_OF_MEMORY = "out_of_memory"
    BACKEND_REFUSED = "backend_refused"
    GONE_AT_SOURCE = "gone_at_source"
    DOWNLOAD_FORBIDDEN = "download_forbidden"
    LABELLED = "labelled"
    OWN_PERMISSIONS = "own_permissions"
    # Why an import ended.
    SUPERSEDED = "superseded"
    REMOVED_AT_SOURCE = "removed_at_source"
    OUT_OF_SCOPE = "out_of_scope"
    SAME_BYTES = "same_bytes"
    ERASED = "erased"
    LOST = "lost"
    # A condition that passes by itself.
    QUOTA = "quota"
    PAUSED = "paused"
    QUIET_HOURS = "quiet_hours"
    LOCKED_AT_SOURCE = "locked_at_source"
    WAITING_FOR_SOURCE = "waiting_for_source"
    WAITING_FOR_STORE = "waiting_for_store"
    WAITING_FOR_BACKEND = "waiting_for_backend"
    WAITING_FOR_INDEX = "waiting_for_index"
    WAITING_FOR_QUEUE = "waiting_for_queue"
    WAITING_FOR_CATALOG = "waiting_for_catalog"
    WAITING_FOR_DISK = "waiting_for_disk"
    WAITING_FOR_INDEXING = "waiting_for_indexing"
    THROTTLED = "throttled"
    # A person has to decide or repair.
    MASS_REMOVAL = "mass_removal"
    FOLDER_GONE = "folder_gone"
    DRIVE_GONE = "drive_gone"
    NEEDS_SIGN_IN = "needs_sign_in"
    MISCONFIGURED = "misconfigured"
    ACCESS_DENIED = "access_denied"
    SECRET_WRONG = "secret_wrong"  # noqa: S105 (a code, no secret)
    SECRET_EXPIRED = "secret_expired"  # noqa: S105 (a code, no secret)
    SECRETS_LOCKED = "secrets_locked"
    CERTIFICATE_UNKNOWN = "certificate_unknown"
    FEDERATION_MISSING = "federation_missing"
    TOKEN_FILE_MISSING = "token_file_missing"  # noqa: S105 (a code, no secret)
    SIGN_IN_INCOMPLETE = "sign_in_incomplete"
    SIGN_IN_MISDIRECTED = "sign_in_misdirected"
    SIGN_IN_REFUSED = "sign_in_refused"
    CREDENTIAL_REFUSED = "credential_refused"
    PERSON_NOT_ADMITTED = "person_not_admitted"
    OFFLINE_ACCESS_MISSING = "offline_access_missing"
    ADDRESS_UNUSABLE = "address_unusable"
    CA_FILE_UNUSABLE = "ca_file_unusable"
    APP_UNKNOWN = "app_unknown"
    TENANT_UNKNOWN = "tenant_unknown"
    CONSENT_MISSING = "consent_missing"
    CONDITIONAL_ACCESS = "conditional_access"
    USER_BLOCKED = "user_blocked"
    WRONG_USER = "wrong_user"
    CLOCK_WRONG = "clock_wrong"
    GRANT_MISSING = "grant_missing"
    NO_ONEDRIVE = "no_onedrive"
    SITE_LOCKED = "site_locked"
    LABELS_UNKNOWN = "labels_unknown"
    PERMISSIONS_UNKNOWN = "permissions_unknown"
    BACKEND_LATE = "backend_late"
    CRASHES_WORKER = "crashes_worker"
    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    SOURCE_MISBEHAVES = "source_misbehaves"
    DISK_FULL = "disk_full"
