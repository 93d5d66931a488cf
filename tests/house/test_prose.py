"""Prose that people read in a terminal or an editor is not wider than code."""

from __future__ import annotations

import re

from house.project import ROOT

WIDTH = 100
_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def test_the_page_on_connecting_is_wrapped() -> None:
    page = _CODE.sub("", (ROOT / "docs" / "connecting.md").read_text(encoding="utf-8"))
    wide = [
        line
        for line in page.splitlines()
        # Tables cannot be wrapped, and neither can an address.
        if len(line) > WIDTH and not line.startswith("|") and "](http" not in line
    ]
    assert not wide
