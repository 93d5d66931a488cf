"""What a point looks like in Qdrant: one mapping for both engines.

``docs/index-contract.md`` describes it for those who read the index without drivefeed.
Change :data:`SCHEMA` whenever a field changes its meaning; readers check it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from drivefeed.ports import Point

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from drivefeed.ports import SearchFilter

SCHEMA: Final = 1
"""Version of the payload, stored with every point."""

DENSE: Final = "dense"
"""Name of the dense vector (cosine)."""

SPARSE: Final = "bm25"
"""Name of the sparse vector (BM25 weights; the engine multiplies in the IDF)."""

FieldKind = Literal["keyword", "integer", "bool"]

INDEXED: Final[Mapping[str, FieldKind]] = {
    "org_id": "keyword",
    "document_id": "keyword",
    "import_id": "keyword",
    "round": "integer",
    "live": "bool",
    "folders": "keyword",
    "media_type": "keyword",
}
"""Payload fields with an index, because something filters by them."""

Condition = tuple[str, str | int | bool | list[str]]
"""A field and the value it must have; for a list, one of the values it must have."""


def clean(text: str) -> str:
    """Return ``text`` with lone surrogates replaced by U+FFFD, because UTF-8 has no place for them.

    Everything else stays, NUL and emoji included.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def to_payload(point: Point) -> dict[str, Any]:
    """Return the payload of a point; its id and vectors are kept beside it."""
    return {
        "schema": SCHEMA,
        "org_id": point.org_id,
        "document_id": point.document_id,
        "import_id": point.import_id,
        "round": point.round,
        "seq": point.seq,
        "chunk": point.chunk,
        "page": point.page,
        "name": clean(point.name),
        "media_type": point.media_type,
        "folders": list(point.folders),
        "live": point.live,
        "text": clean(point.text),
    }


def from_payload(point_id: str, payload: Mapping[str, Any]) -> Point:
    """Return the point of a payload, with an empty vector: a search does not read vectors back.

    Raises:
        KeyError: the payload is not one of ours.
    """
    return Point(
        point_id=point_id,
        vector=(),
        text=payload["text"],
        org_id=payload["org_id"],
        document_id=payload["document_id"],
        import_id=payload["import_id"],
        round=payload["round"],
        seq=payload["seq"],
        chunk=payload["chunk"],
        page=payload["page"],
        name=payload["name"],
        media_type=payload["media_type"],
        folders=tuple(payload["folders"]),
        live=payload["live"],
    )


def owner_of(payload: Mapping[str, Any] | None) -> tuple[str, int, bool]:
    """Return import id, round and live flag of a payload.

    A payload that is none of ours belongs to round 0 of an import without a name.
    """
    found = payload or {}
    import_id, round_ = found.get("import_id"), found.get("round")
    if not isinstance(import_id, str) or not isinstance(round_, int):
        return "", 0, bool(found.get("live"))
    return import_id, round_, bool(found.get("live"))


def placement(name: str, folders: tuple[str, ...]) -> dict[str, Any]:
    """Return the part of the payload that changes when a file is renamed or moved."""
    return {"name": clean(name), "folders": list(folders)}


def conditions(where: SearchFilter) -> list[Condition]:
    """Return what every found point must fulfil; the organization is always among it."""
    must: list[Condition] = [("org_id", where.org_id)]
    if where.live is not None:
        must.append(("live", where.live))
    if where.folders:
        must.append(("folders", list(where.folders)))
    if where.media_types:
        must.append(("media_type", list(where.media_types)))
    if where.document_id is not None:
        must.append(("document_id", where.document_id))
    return must


def of_round(import_id: str | None, round_: int | None = None) -> list[Condition]:
    """Return the conditions that select the points of an import, of one round, or all."""
    must: list[Condition] = []
    if import_id is not None:
        must.append(("import_id", import_id))
    if round_ is not None:
        must.append(("round", round_))
    return must


def of_org(org_id: str | None) -> list[Condition]:
    """Return the conditions that select the points of an organization, or all."""
    return [] if org_id is None else [("org_id", org_id)]


def vector_of(point: Point, dimension: int) -> list[float]:
    """Return the dense vector as plain floats.

    Raises:
        ValueError: its length is not the dimension of the index (a defect of the caller).
    """
    vector = list(map(float, point.vector))
    check_dimension(vector, dimension)
    return vector


def check_dimension(vector: Sequence[float], dimension: int) -> None:
    """Raise a ValueError unless the vector has that many numbers."""
    if len(vector) != dimension:
        raise ValueError(f"a vector of {len(vector)} numbers does not fit {dimension} dimensions")
