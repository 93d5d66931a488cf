"""Requests of one account, built by msgraph-sdk and not yet sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drivefeed.sources.graph.links import check_link

if TYPE_CHECKING:
    from drivefeed.sources.graph.account import GraphAccount


class GraphRequests:
    """Builds the requests that the client sends."""

    def __init__(self, account: GraphAccount, adapter: Any) -> None:
        """Import the builders' modules, which takes a while; so this belongs into a thread.

        Args:
            account: whose Graph is asked.
            adapter: the SDK's request adapter.
        """
        from msgraph.generated.drives.drives_request_builder import DrivesRequestBuilder

        self.account = account
        self._drives = DrivesRequestBuilder(adapter, {"baseurl": account.base_url})
        # The builders import their modules when first used; this is still the thread.
        self.content_request("warm", "up")
        self.item_request("warm", "up", ())
        self.drive_request("warm", ())
        self.raw_request(account.base_url)

    def drive_request(self, drive_id: str, select: tuple[str, ...]) -> Any:
        """Build the request for a drive."""
        return self._selected(self._drives.by_drive_id(drive_id), select)

    def item_request(self, drive_id: str, item_id: str, select: tuple[str, ...]) -> Any:
        """Build the request for an item by id."""
        drive = self._drives.by_drive_id(drive_id)
        return self._selected(drive.items.by_drive_item_id(item_id), select)

    def content_request(self, drive_id: str, item_id: str) -> Any:
        """Build the request for a file's content."""
        item = self._drives.by_drive_id(drive_id).items.by_drive_item_id(item_id)
        return item.content.to_get_request_information()

    def raw_request(self, url: str, *, method: str = "GET") -> Any:
        """Build the request for a link of Graph's own, which is sent as it is.

        Raises:
            NeedsAttention: the link leads away from Graph.
        """
        check_link(url, self.account.base_url)
        root = self._drives.by_drive_id("any").items.by_drive_item_id("root")
        request = root.delta.with_url(url).to_get_request_information()
        if method != "GET":
            from kiota_abstractions.method import Method

            request.http_method = Method[method]
        return request

    @staticmethod
    def _selected(builder: Any, select: tuple[str, ...]) -> Any:
        request = builder.to_get_request_information()
        if select:
            request.query_parameters["%24select"] = ",".join(select)
        return request
