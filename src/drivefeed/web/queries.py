"""What may be asked of lists: parameters that pages and ``/v1`` share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import Depends, Query
from pydantic import BeforeValidator

from drivefeed.catalog.browsing import BadCursor, Filter, page_of_files
from drivefeed.catalog.progress import Standing  # noqa: TC001 - FastAPI reads the annotations
from drivefeed.domain.lifecycle import State  # noqa: TC001 - FastAPI reads the annotations
from drivefeed.web.problems import Problem, bad_request
from drivefeed.web.shapes import FilesShape, files_shape

if TYPE_CHECKING:
    from drivefeed.catalog.api_keys import ApiKey
    from drivefeed.web.site import Site

MOST_HITS: Final = 20
_PAGE: Final = 50


def _none_for_nothing(value: Any) -> Any:
    """Forms send what was left empty as an empty text."""
    return None if value == "" else value


_Optional = BeforeValidator(_none_for_nothing)


@dataclass(frozen=True, slots=True)
class FileQuery:
    """Which files of a connection are asked for, and from where on."""

    standing: Annotated[Standing | None, _Optional, Query(description="Where they stand.")] = None
    state: Annotated[State | None, _Optional, Query(description="The import's state.")] = None
    reason: Annotated[str, Query(max_length=40, description="Why they stand there.")] = ""
    q: Annotated[str, Query(max_length=200, description="Letters in the file's name.")] = ""
    after: Annotated[str, Query(max_length=2_000, description="'next' of the page before.")] = ""
    limit: Annotated[int, Query(ge=1, le=200, description="At most so many.")] = _PAGE

    @property
    def is_filtered(self) -> bool:
        """Whether some files may be left out."""
        return any((self.standing, self.state, self.reason, self.q))

    def address(self, *, after: str | None = None) -> str:
        """Return the query string of the same list, from its beginning or from further on."""
        words = {
            "standing": self.standing,
            "state": self.state,
            "reason": self.reason,
            "q": self.q,
            "after": after,
            "limit": self.limit if self.limit != _PAGE else None,
        }
        return urlencode({name: str(value) for name, value in words.items() if value})


WantedFiles = Annotated[FileQuery, Depends()]
Words = Annotated[str, Query(max_length=500, description="Words, or a question.")]


async def asked_files(site: Site, key: ApiKey, connection_id: str, query: FileQuery) -> FilesShape:
    """Return the page of files that was asked for.

    Raises:
        NotFound: the org of the key has no such connection.
        Problem: the list cannot be continued from there.
    """
    only = Filter(query.standing, query.state, query.reason or None, query.q or None)
    try:
        page = await page_of_files(
            site.catalog,
            key.org_id,
            connection_id,
            only=only,
            after=query.after or None,
            limit=query.limit,
        )
    except BadCursor as error:
        raise bad_request(str(error), [{"parameter": "after", "problem": str(error)}]) from None
    return files_shape(page)


def no_search() -> Problem:
    """Return the answer where these pages cannot search."""
    return Problem(
        503,
        "no_search",
        "Nothing that can search is running.",
        remedy="Start drivefeed with 'drivefeed up'; then search again.",
    )
