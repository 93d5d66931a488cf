import json
from dataclasses import fields, replace

from drivefeed.indexer.vectors.payload import (
    INDEXED,
    clean,
    conditions,
    from_payload,
    of_round,
    placement,
    to_payload,
)
from drivefeed.ports import Point, SearchFilter

POINT = Point(
    point_id="9f0f3a0e-3c1e-5c52-9d6c-5b1d7d1c0d11",
    vector=(1.0, 2.0),
    text="text",
    org_id="o",
    document_id="d",
    import_id="i",
    round=2,
    seq=3,
    chunk=4,
    page=5,
    name="n",
    media_type="text/plain",
    folders=("f", "g"),
    live=False,
)


def test_there_and_back_loses_the_vector_alone() -> None:
    payload = json.loads(json.dumps(to_payload(POINT)))
    assert from_payload(POINT.point_id, payload) == replace(POINT, vector=())


def test_a_payload_has_every_field_of_a_point_and_its_version() -> None:
    names = {field.name for field in fields(Point)} - {"point_id", "vector"}
    assert set(to_payload(POINT)) == names | {"schema"}
    assert to_payload(POINT)["schema"] == 1


def test_everything_filtered_by_is_indexed() -> None:
    where = SearchFilter("o", True, ("f",), ("m",), "d")
    asked = {field for field, _ in [*conditions(where), *of_round("i", 1)]}
    assert asked == set(INDEXED)


def test_the_organization_is_always_a_condition() -> None:
    assert conditions(SearchFilter("o")) == [("org_id", "o"), ("live", True)]
    assert conditions(SearchFilter("", live=None)) == [("org_id", "")]


def test_a_round_without_an_import_is_everything() -> None:
    assert of_round(None) == []
    assert of_round("i") == [("import_id", "i")]


def test_a_move_touches_name_and_folders_alone() -> None:
    assert placement("n\ud800", ("a",)) == {"name": "n\ufffd", "folders": ["a"]}


def test_clean_replaces_lone_surrogates_alone() -> None:
    assert clean("a\ud800b") == "a\ufffdb"
    for text in ("", "nul \0", "🦓", "e\u0301"):
        assert clean(text) == text
