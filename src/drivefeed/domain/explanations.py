"""Each reason in words: the sentence a person reads, and the remedy that cures it."""

from __future__ import annotations

from drivefeed.domain.access import ACCESS_EXPLANATIONS
from drivefeed.domain.explanation import Explanation, Kind
from drivefeed.domain.reasons import Reason

__all__ = ["EXPLANATIONS", "Explanation", "Kind", "explain"]

_S, _R, _W, _H, _A = Kind.SKIPPED, Kind.REJECTED, Kind.WITHDRAWN, Kind.HOLD, Kind.ATTENTION

EXPLANATIONS: dict[Reason, Explanation] = {
    Reason.NOT_A_FILE: Explanation(_S, "It is a folder.", "Nothing: the files in it are imported."),
    Reason.TYPE_NOT_INCLUDED: Explanation(
        _S,
        "Its file type is not among those this connection imports.",
        "Add the type to the connection's file types.",
    ),
    Reason.EXCLUDED_BY_FILTER: Explanation(
        _S, "An exclude pattern matches its path.", "Change the connection's exclude patterns."
    ),
    Reason.NOT_INCLUDED_BY_FILTER: Explanation(
        _S, "No include pattern matches its path.", "Change the connection's include patterns."
    ),
    Reason.IN_SUBFOLDER: Explanation(
        _S, "It lies in a subfolder, and subfolders are off.", "Turn subfolders on."
    ),
    Reason.LARGER_THAN_LIMIT: Explanation(
        _S, "It is larger than the connection's size limit.", "Raise the size limit."
    ),
    Reason.OLDER_THAN_LIMIT: Explanation(
        _S,
        "It was last modified before the connection's start date.",
        "Move the start date, or edit the file.",
    ),
    Reason.EMPTY_FILE: Explanation(
        _S, "It has no bytes.", "Nothing: it is imported once it has content."
    ),
    Reason.PACKAGE: Explanation(
        _S,
        "It is a OneNote notebook or another package, which has no file content.",
        "Export the pages you need as PDF or DOCX.",
    ),
    Reason.VAULT: Explanation(
        _S,
        "It is the Personal Vault, or lies in it; Microsoft opens that to its owner alone.",
        "Move the files you need to another folder.",
    ),
    Reason.SHORTCUT: Explanation(
        _S, "It is a shortcut to another drive.", "Connect the folder it points to."
    ),
    Reason.MALWARE: Explanation(
        _S,
        "Microsoft marks it as malware and refuses to hand it out.",
        "Clean or delete the file at the source.",
    ),
    Reason.UNKNOWN_KIND: Explanation(
        _S,
        "It is neither a file nor a folder of a kind drivefeed knows.",
        "Report it with the output of 'drivefeed why'.",
    ),
    Reason.FORGOTTEN: Explanation(
        _S,
        "Somebody had it forgotten: its content was erased, and no listing brings it back.",
        "'drivefeed forget PATH --undo' imports it again.",
    ),
    Reason.UNSUPPORTED_TYPE: Explanation(
        _R,
        "The ingestion backend cannot read this type of file.",
        "Save it in a supported type (for example DOCX, PPTX, XLSX or PDF).",
    ),
    Reason.ENCRYPTED: Explanation(
        _R,
        "It is protected by a password or a rights management label.",
        "Save a copy without the protection.",
    ),
    Reason.CORRUPT: Explanation(
        _R,
        "Its content is damaged or not what its name says.",
        "Open it in its own application and save it again.",
    ),
    Reason.NO_TEXT: Explanation(
        _R,
        "No text was found in it; it may be a scan or a picture.",
        "Turn on OCR, or add a text layer.",
    ),
    Reason.TOO_LARGE: Explanation(
        _R,
        "Its content is larger than the limits of the extraction.",
        "Split the file, or raise the extraction limits.",
    ),
    Reason.EXTRACTION_TIMEOUT: Explanation(
        _R,
        "Reading its text took longer than allowed.",
        "Split or simplify the file, or raise the time limit, then retry it.",
    ),
    Reason.EXTRACTION_CRASHED: Explanation(
        _R,
        "The reader for this type of file crashed on it.",
        "Save the file again in its own application, then retry it.",
    ),
    Reason.OUT_OF_MEMORY: Explanation(
        _R,
        "Reading its text needed more memory than allowed.",
        "Split the file, or raise the memory limit, then retry it.",
    ),
    Reason.BACKEND_REFUSED: Explanation(
        _R,
        "The ingestion backend refused the file.",
        "Read the backend's message, repair the cause, then retry it.",
    ),
    Reason.GONE_AT_SOURCE: Explanation(
        _R,
        "It was deleted at the source before it could be copied.",
        "Nothing: its removal follows from the source.",
    ),
    Reason.DOWNLOAD_FORBIDDEN: Explanation(
        _R,
        "It may be listed, but not downloaded, with the rights of this account.",
        "Give the account the right to read the file's content. It is asked for again each day; "
        "retry it to have it at once.",
    ),
    Reason.LABELLED: Explanation(
        _R,
        "It has a sensitivity label, and the connection excludes files with one.",
        "Take the label off, or set the policy labelled to include; then retry it.",
    ),
    Reason.OWN_PERMISSIONS: Explanation(
        _R,
        "It has permissions of its own, and the connection excludes files with such.",
        "Have it inherit its folder's permissions again, or set the policy own_permissions to "
        "include; then retry it.",
    ),
    Reason.SUPERSEDED: Explanation(_W, "A newer version of the file took its place.", "Nothing."),
    Reason.REMOVED_AT_SOURCE: Explanation(
        _W, "It was deleted at the source.", "Restore it there; it comes back by itself."
    ),
    Reason.OUT_OF_SCOPE: Explanation(
        _W,
        "It was moved out of the connected folder, or a filter now excludes it.",
        "Move it back, or change the filter.",
    ),
    Reason.SAME_BYTES: Explanation(
        _W, "It holds the same bytes as another version of the document.", "Nothing."
    ),
    Reason.ERASED: Explanation(_W, "It was erased on request.", "Nothing."),
    Reason.LOST: Explanation(
        _W,
        "What it had in the object store or the index was gone after a restore.",
        "Nothing: it is imported again by itself, and not charged again.",
    ),
    Reason.QUOTA: Explanation(
        _H,
        "The organization's page limit leaves no room for it.",
        "Raise the limit with 'drivefeed usage limit', or wait for the next period; it goes on by "
        "itself.",
    ),
    Reason.PAUSED: Explanation(
        _H, "The connection is paused.", "Let it flow again with 'drivefeed resume'."
    ),
    Reason.QUIET_HOURS: Explanation(
        _H,
        "The connection has quiet hours now, in which no transfer starts.",
        "Nothing: it goes on when they are over. 'drivefeed connection set' changes them.",
    ),
    Reason.LOCKED_AT_SOURCE: Explanation(
        _H,
        "Somebody has the file checked out or locked, and Microsoft gives it to nobody else.",
        "Nothing: it is tried each quarter of an hour. Checking the file in ends it sooner.",
    ),
    Reason.WAITING_FOR_SOURCE: Explanation(
        _H, "Microsoft Graph does not answer.", "Nothing: it goes on when Graph answers again."
    ),
    Reason.WAITING_FOR_STORE: Explanation(
        _H,
        "The object store does not answer.",
        "Look at the store with 'drivefeed doctor'; it goes on by itself.",
    ),
    Reason.WAITING_FOR_BACKEND: Explanation(
        _H,
        "The ingestion backend does not answer.",
        "Look at the backend with 'drivefeed doctor'; it goes on by itself.",
    ),
    Reason.WAITING_FOR_INDEX: Explanation(
        _H,
        "The vector index does not answer.",
        "Look at the index with 'drivefeed doctor'; it goes on by itself.",
    ),
    Reason.WAITING_FOR_QUEUE: Explanation(
        _H,
        "Redis does not answer.",
        "Look at the queue with 'drivefeed doctor'; it goes on by itself.",
    ),
    Reason.WAITING_FOR_CATALOG: Explanation(
        _H,
        "The catalog's database cannot be written.",
        "Look at the disk with 'drivefeed doctor'; it goes on by itself.",
    ),
    Reason.WAITING_FOR_DISK: Explanation(
        _H,
        "A disk is nearly full, so nothing new is downloaded.",
        "Make room; 'drivefeed doctor' says where, and downloads go on by themselves.",
    ),
    Reason.WAITING_FOR_INDEXING: Explanation(
        _H,
        "Much was copied that is not indexed yet, so the rest of a large import waits.",
        "Nothing: it goes on as files are indexed. More workers make that quicker.",
    ),
    Reason.THROTTLED: Explanation(
        _H,
        "Microsoft asked to wait: it is busy, or was asked too much.",
        "Nothing: it goes on by itself, after the time that Microsoft named if it named one.",
    ),
    Reason.MASS_REMOVAL: Explanation(
        _A,
        "More documents than usual disappeared at once, so nothing was removed yet.",
        "Check the source, then approve or discard the removals with 'drivefeed removals'.",
    ),
    Reason.FOLDER_GONE: Explanation(
        _A,
        "The connected folder is no longer there; its documents are kept.",
        "Restore the folder and resume the connection, or approve the removal.",
    ),
    Reason.DRIVE_GONE: Explanation(
        _A,
        "The drive is no longer there; its documents are kept.",
        "Restore the drive and resume the connection, or approve the removal.",
    ),
    Reason.LABELS_UNKNOWN: Explanation(
        _A,
        "The connection excludes files with a sensitivity label, and Microsoft does not tell this "
        "account which have one.",
        "Give the app Files.Read.All or Sites.Read.All, or set the policy labelled to "
        "include; then retry it.",
    ),
    Reason.PERMISSIONS_UNKNOWN: Explanation(
        _A,
        "The connection excludes files with permissions of their own, and Microsoft does not tell "
        "this account which have such.",
        "Give the app Files.Read.All or Sites.Read.All, or set the policy own_permissions to "
        "include; then retry it.",
    ),
    Reason.BACKEND_LATE: Explanation(
        _A,
        "The ingestion backend did not finish before the deadline.",
        "Look at the backend; a late success still counts. Retry to submit it again.",
    ),
    Reason.CRASHES_WORKER: Explanation(
        _A,
        "The worker died several times while it worked on this.",
        "Look at the logs of those times, then retry it; a drive is looked at again by itself.",
    ),
    Reason.ATTEMPTS_EXHAUSTED: Explanation(
        _A, "Every attempt at this step failed.", "Read the last error, then retry it."
    ),
    Reason.SOURCE_MISBEHAVES: Explanation(
        _A,
        "Microsoft Graph gave answers that cannot be followed, so the sync stopped.",
        "A drive is asked again by itself, a file with 'drivefeed retry'; report it with the "
        "request id if it stays.",
    ),
    Reason.DISK_FULL: Explanation(
        _A, "The disk is full.", "Free some space; the work goes on by itself."
    ),
    **ACCESS_EXPLANATIONS,
}


def explain(reason: Reason) -> Explanation:
    """Return the words for a reason.

    Raises:
        KeyError: never for a member of :class:`Reason`; a test proves the table total.
    """
    return EXPLANATIONS[reason]
