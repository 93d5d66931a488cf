"""The faults that the state machine draws from, each as graphsim is told of it.

Left out on purpose, because no reader of delta alone can make up for them: tombstones and changes
that are lost for good (a reconcile finds those), and downloads whose altered bytes arrive whole
(they are accepted and marked, as the rules about SharePoint's rewriting say).
"""

from __future__ import annotations

from typing import Any

_DELTA: dict[str, Any] = {"op": "delta"}
_YEAR_1 = "0001-01-01T00:00:00Z"

FAULTS: tuple[tuple[str, dict[str, Any]], ...] = (
    *(("status", _DELTA | {"status": status}) for status in (500, 502, 504)),
    ("status", _DELTA | {"status": 503, "retry_after": "3"}),
    ("status", _DELTA | {"status": 500, "count": 3}),
    ("throttle", _DELTA | {"retry_after": "7"}),
    ("throttle", {"op": "content", "retry_after": "2"}),
    ("status", {"op": "item", "status": 500}),
    *(("status", {"op": "content", "status": status}) for status in (401, 500)),
    ("status", {"op": "content", "status": 500, "count": 2}),
    ("status", {"op": "download", "status": 500}),
    ("expired_url", {"op": "download"}),
    ("reset", {"op": "download", "after": 1}),
    ("truncate", {"op": "download", "after": 2}),
    ("inline", {"op": "content"}),
    ("no_length", {"op": "download"}),
    ("gzip", {"op": "download"}),
    ("reset", _DELTA | {"after": 5}),
    ("truncate", _DELTA | {"after": 50}),
    ("empty_page", _DELTA | {"count": 2}),
    ("late_end", _DELTA | {"number": 2}),
    ("loop", _DELTA),
    ("loop", _DELTA | {"fresh": True, "count": 3}),
    ("gone", _DELTA),
    ("gone", _DELTA | {"location": False, "inner": "resyncChangesUploadDifferences", "skip": 1}),
    ("duplicate", _DELTA | {"count": 2}),
    ("shuffle", _DELTA | {"count": 2}),
    ("shuffle_round", _DELTA),
    ("children_first", _DELTA),
    ("omit_root", _DELTA | {"count": 3}),
    ("omit_parents", _DELTA | {"count": 3}),
    ("stale_first", _DELTA | {"share": 0.7}),
    ("repeat", _DELTA | {"share": 0.7}),
    ("moving", _DELTA),
    ("page_size", _DELTA | {"least": 1, "most": 3, "count": 4}),
    *(
        ("drop_fields", _DELTA | {"fields": [name]})
        for name in ("name", "parentReference", "size", "file", "file.hashes", "eTag")
    ),
    ("set_fields", _DELTA | {"values": {"size": -5, "createdDateTime": _YEAR_1, "unheardOf": {}}}),
    ("churn", _DELTA | {"count": 2}),
    ("cycle", _DELTA),
    ("not_json", _DELTA),
    ("html", _DELTA),
    ("foreign_link", _DELTA),
    ("no_link", _DELTA),
    ("both_links", _DELTA),
)
