"""The rows about downloads and full listings; see :mod:`quirks.switches`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drivefeed.catalog import deciding
from drivefeed.catalog.rereading import Answer
from drivefeed.domain import redact
from drivefeed.domain.errors import Permanent
from drivefeed.domain.reasons import Reason
from drivefeed.indexer.extract import detect
from drivefeed.services import drive_check
from drivefeed.services.second_try import SecondTry
from drivefeed.sources.graph import download, download_hosts, errors
from drivefeed.sources.graph.download import GraphDownload
from drivefeed.stages import sums, transfer
from drivefeed.stages.transfer import Transfer
from quirks.switch import Switch

if TYPE_CHECKING:
    import httpx
    import pytest

    from drivefeed.stages.imports import Task
    from quirks.switch import Off

_WIRE = "quirks/test_download_wire.py::test_"
_CONTENT = "quirks/test_download_content.py::test_"
_RECONCILE = "integration/verify/test_reconcile.py::test_"
_DOWNLOAD = "sources.graph.download.GraphDownload"
_TRANSFER = "stages.transfer"


def _once_is_enough(patch: pytest.MonkeyPatch) -> None:
    async def nothing(_: Any) -> None:
        """Leave it to a person."""

    patch.setattr(SecondTry, "tick", nothing)


def _the_token_goes_along(patch: pytest.MonkeyPatch) -> None:
    original = GraphDownload._from_here
    patch.setattr(
        GraphDownload,
        "_from_here",
        lambda self: original(self) | {"Authorization": "Bearer nobody's"},
    )


def _every_host_sends_files(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(download_hosts, "_sends_files", lambda *_: True)


def _redirects_are_not_followed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(download, "_MOST_REDIRECTS", 0)


def _only_redirects_are_understood(patch: pytest.MonkeyPatch) -> None:
    original = GraphDownload._take

    def take(self: Any, response: httpx.Response) -> None:
        if self._direct:
            raise Permanent("No redirect.", reason=Reason.CORRUPT)
        original(self, response)

    patch.setattr(GraphDownload, "_take", take)


def _nothing_is_tried_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(download, "TRIES_WITHOUT_PROGRESS", 0)


def _refused_urls_are_asked_for_on_and_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(download, "_REFUSING", frozenset())


def _urls_are_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(redact, "_RULES", ())


def _what_arrived_is_whole(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GraphDownload, "_short", lambda _: None)
    patch.setattr(download, "TRIES_WITHOUT_PROGRESS", 0)


def _any_version_will_do(patch: pytest.MonkeyPatch) -> None:
    original = GraphDownload._take

    def take(self: Any, response: httpx.Response) -> None:
        self.etag = response.headers.get("etag")
        original(self, response)

    patch.setattr(GraphDownload, "_take", take)


def _encoding_is_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(download, "encoded", lambda _: False)


def _everything_is_appended(patch: pytest.MonkeyPatch) -> None:
    original = GraphDownload._take

    def take(self: Any, response: httpx.Response) -> None:
        original(self, response)
        self._skip = 0

    patch.setattr(GraphDownload, "_take", take)


def _any_part_will_do(patch: pytest.MonkeyPatch) -> None:
    original = GraphDownload._take

    def take(self: Any, response: httpx.Response) -> None:
        received = self._received
        if response.status_code == download.PARTIAL:
            self._received = int(response.headers["content-range"].split()[1].split("-")[0])
        try:
            original(self, response)
        finally:
            self._received = received

    patch.setattr(GraphDownload, "_take", take)


def _silence_is_borne(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(download, "TRIES_WITHOUT_PROGRESS", 0)


def _drops_are_borne(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(download, "PROGRESS", 1)


def _hashes_are_believed(patch: pytest.MonkeyPatch) -> None:
    def strict(task: Task, sums: Any) -> str:
        if sums.quick_xor.base64digest() != task.one.quick_xor:
            raise Permanent("Not the listed bytes.", reason=Reason.CORRUPT)
        return "verified"

    patch.setattr(transfer, "_integrity", strict)


def _the_first_bytes_are_taken(patch: pytest.MonkeyPatch) -> None:
    async def checked(self: Any, task: Task) -> tuple[Any, str]:
        sums = await self._bytes(task)
        return sums, transfer._integrity(task, sums)

    patch.setattr(Transfer, "_checked_bytes", checked)


def _no_code(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(errors, "_by_code", lambda *_: None)


def _everything_is_wanted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(deciding, "skip_reason", lambda *_: None)


def _folders_are_files(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(deciding, "FOLDERS", frozenset())
    _everything_is_wanted(patch)


def _size_is_believed(patch: pytest.MonkeyPatch) -> None:
    # Asked of what the answer announces, and again of what has come.
    for room in (transfer, sums):
        patch.setattr(room, "require_size", lambda *_: None)


def _compound_files_are_workbooks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(detect, "_compound_type", lambda *_: detect.XLS)


def _listings_are_not_followed(patch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: Any) -> int:
        return 0

    patch.setattr(drive_check, "take_answers", nothing)


def _listings_are_believed(patch: pytest.MonkeyPatch) -> None:
    async def gone(self: Any, _: Any, one: Any, row: Any) -> Any:
        del self
        return Answer(one.item_id, row, None)

    patch.setattr(drive_check.DriveCheck, "_answer", gone)


def _no_status(status: int) -> Off:
    def off(patch: pytest.MonkeyPatch) -> None:
        patch.setitem(errors._BY_STATUS, status, lambda *_: None)

    return off


DOWNLOADS = (
    Switch(
        "17b",
        "tombstones and changes that are lost",
        "services.drive_check.DriveCheck",
        f"{_RECONCILE}lost_and_missed",
        _listings_are_not_followed,
    ),
    Switch(
        "20",
        "a listing that leaves items out",
        "services.drive_check.DriveCheck._answer",
        f"{_RECONCILE}a_listing_that_is_wrong",
        _listings_are_believed,
    ),
    Switch(
        "51a",
        "a download host that must see no token",
        f"{_DOWNLOAD}._ask_host",
        f"{_WIRE}51",
        _the_token_goes_along,
    ),
    Switch(
        "51b",
        "a redirect to a host that sends no files",
        "sources.graph.download_hosts.download_url",
        "unit/graph_source/test_download_hosts.py::test_other",
        _every_host_sends_files,
    ),
    Switch(
        "52a",
        "a redirect",
        f"{_DOWNLOAD}._connect",
        f"{_WIRE}52_a_redirect",
        _redirects_are_not_followed,
    ),
    Switch(
        "52b",
        "no redirect",
        f"{_DOWNLOAD}._connect",
        f"{_WIRE}52_a_body",
        _only_redirects_are_understood,
    ),
    Switch(
        "53a",
        "a URL that expired",
        f"{_DOWNLOAD}._reconnect",
        f"{_WIRE}53_a_refused",
        _nothing_is_tried_again,
    ),
    Switch(
        "53b",
        "URLs that are all refused",
        f"{_DOWNLOAD}._reconnect",
        f"{_WIRE}53_once",
        _refused_urls_are_asked_for_on_and_on,
    ),
    Switch(
        "56", "a URL that is a credential", "domain.redact.redact", f"{_WIRE}56", _urls_are_told
    ),
    Switch(
        "57a",
        "Office files unlike their hash",
        f"{_TRANSFER}._integrity",
        f"{_CONTENT}57_office",
        _hashes_are_believed,
    ),
    Switch(
        "57b",
        "bytes that went wrong in silence",
        f"{_TRANSFER}.Transfer._checked_bytes",
        f"{_CONTENT}57_a_transfer",
        _the_first_bytes_are_taken,
    ),
    Switch(
        "58",
        "photos smaller than listed",
        f"{_TRANSFER}._integrity",
        f"{_CONTENT}58",
        _hashes_are_believed,
    ),
    Switch(
        "60a",
        "a body that is cut",
        f"{_DOWNLOAD}._short",
        f"{_WIRE}60_a_cut",
        _what_arrived_is_whole,
    ),
    Switch(
        "60b",
        "another version in the middle",
        f"{_DOWNLOAD}._take",
        f"{_WIRE}60_not",
        _any_version_will_do,
    ),
    Switch("62", "gzip unasked", f"{_DOWNLOAD}._take", f"{_WIRE}62", _encoding_is_not_looked_at),
    Switch(
        "63a",
        "a range that is ignored",
        f"{_DOWNLOAD}._take",
        f"{_WIRE}63_a_range",
        _everything_is_appended,
    ),
    Switch(
        "63b",
        "another part than asked for",
        f"{_DOWNLOAD}._take",
        f"{_WIRE}63_another",
        _any_part_will_do,
    ),
    Switch(
        "65a",
        "malware by its facet",
        "domain.scope.skip_reason",
        f"{_CONTENT}65_what",
        _everything_is_wanted,
    ),
    Switch(
        "65b",
        "malware by its refusal",
        "sources.graph.errors._by_code",
        f"{_CONTENT}65_a_refusal",
        _no_code,
    ),
    Switch(
        "66",
        "folders, which are not fetched",
        "catalog.deciding.FOLDERS",
        f"{_CONTENT}66",
        _folders_are_files,
    ),
    Switch(
        "67",
        "files larger than they say",
        "stages.sums.require_size",
        f"{_CONTENT}67",
        _size_is_believed,
    ),
    Switch(
        "71a",
        "a host that goes silent",
        f"{_DOWNLOAD}._reconnect",
        f"{_WIRE}71_a_host_that_goes",
        _silence_is_borne,
    ),
    Switch(
        "71b",
        "a host that only drips",
        f"{_DOWNLOAD}._pieces",
        f"{_WIRE}71_a_host_that_only",
        _drops_are_borne,
    ),
    Switch(
        "72",
        "documents that rights management encrypted",
        "indexer.extract.detect._compound_type",
        f"{_CONTENT}72",
        _compound_files_are_workbooks,
    ),
    Switch(
        "73a",
        "a share without the right to fetch",
        "sources.graph.errors._forbidden",
        f"{_CONTENT}73_a_file",
        _no_status(403),
    ),
    Switch(
        "73b",
        "rights that come back in silence",
        "services.second_try.SecondTry",
        f"{_CONTENT}73_a_right",
        _once_is_enough,
    ),
    Switch(
        "74",
        "a file that is checked out: 423",
        "sources.graph.errors._locked",
        f"{_CONTENT}74",
        _no_status(423),
    ),
    Switch(
        "75",
        "files of no bytes",
        "domain.scope.skip_reason",
        f"{_CONTENT}75",
        _everything_is_wanted,
    ),
)
