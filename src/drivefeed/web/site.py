"""What the pages are made from: the catalog, the shared look at it, the templates, the search."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined

from drivefeed.domain.visible import visible
from drivefeed.domain.words import count_of, duration_of, instant_of, size_of
from drivefeed.web.limits import WrongKeys
from drivefeed.web.watch import Watch

if TYPE_CHECKING:
    from starlette.requests import Request

    from drivefeed.catalog.engine import Catalog
    from drivefeed.web.backend_calls import Caller
    from drivefeed.web.bell import Bell

Seek = Callable[[str, str, int], Awaitable[list[dict[str, Any]]]]
"""Search: the org's name, the query and a limit in; hits as of ``services.find`` out.

Raises PartDown where nothing that can search is running.
"""


@dataclass(slots=True)
class Site:
    """Everything that answers need.

    Attributes:
        url: where people reach the pages, for example ``http://127.0.0.1:8765``.
        seek: searches; None where these pages have no search.
        index: what the catalog calls the vector index.
        callers: backends that may say that a job ended, by name.
        bell: hears that something changed; None where nobody was asked to say so.
        names: further host names that we answer to.
        pieces: parts of pages that were made for listeners, by org, with their view's number.
    """

    catalog: Catalog
    url: str
    seek: Seek | None = None
    index: str = ""
    watch: Watch = field(init=False)
    wrong_keys: WrongKeys = field(default_factory=WrongKeys)
    templates: Environment = field(init=False)
    pieces: dict[str, tuple[int, dict[str, str]]] = field(default_factory=dict)
    callers: Mapping[str, Caller] = field(default_factory=dict)
    bell: Bell | None = None
    names: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.watch = Watch(self.catalog)
        self.templates = _environment()

    @property
    def is_https(self) -> bool:
        """Whether browsers reach us encrypted, so that cookies can ask for it."""
        return self.url.startswith("https:")

    @property
    def host_name(self) -> str:
        """The name in our address."""
        return urlsplit(self.url).hostname or ""

    def render(self, name: str, /, **values: Any) -> str:
        """Fill in a template; what is not markup is escaped."""
        return self.templates.get_template(name).render(**values)


def site_of(request: Request) -> Site:
    """Return the site that a request asks."""
    site = request.app.state.site
    assert isinstance(site, Site)
    return site


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("drivefeed.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {
        "count": count_of,
        "duration": duration_of,
        "instant": instant_of,
        "iso": _iso,
        "number": _number,
        "segment": _segment,
        "size": size_of,
        "visible": visible,
        "word": _word,
    }
    return environment


def _number(value: int) -> str:
    return f"{value:,}".replace(",", "\u202f")


def _iso(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, tz=UTC).isoformat(timespec="seconds")


def _segment(value: str) -> str:
    return quote(value, safe="")


def _word(value: str) -> str:
    return value.replace("_", " ")
