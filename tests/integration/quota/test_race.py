"""Two files of 70 pages and a limit of 100, copied by two processes at the same moment."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pypdfium2
import pytest

from drivefeed.catalog.engine import open_catalog
from drivefeed.catalog.quota_limits import Limit, set_limit
from drivefeed.catalog.recount import recount
from drivefeed.catalog.tables import imports
from drivefeed.catalog.usage import usage_of
from drivefeed.catalog.usage_tables import reservations
from drivefeed.domain.identity import object_key
from drivefeed.domain.lifecycle import Event, State
from drivefeed.domain.reasons import Reason
from drivefeed.stores.directory import DirectoryStore
from drivefeed.system import SystemClock, SystemIds
from support.clock import no_checkpoint
from support.processes import environment
from unit.catalog.rig import ROOT, Rig, file, folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from drivefeed.domain.model import Import

PAGES, LIMIT = 70, 100
LARGE = 75_000 * PAGES
"""Bytes that a PDF of so many pages has, by the estimate."""


@pytest.fixture
async def rig(catalog_url: str) -> AsyncIterator[Rig]:
    catalog = await open_catalog(
        catalog_url, clock=SystemClock(), ids=SystemIds(), checkpoint=no_checkpoint
    )
    made = await Rig.make(catalog)
    await made.connect()
    await made.scan()
    yield made
    await catalog.aclose()


class Racer:
    """A process that copies what it is told."""

    def __init__(self, name: str, url: str, home: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("racer.py")), name, url, str(home)],
            env=environment() | {"PYTHONPATH": ":".join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def say(self, words: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        assert self.process.stdout is not None
        said = self.process.stdout.readline().strip()
        assert said, f"it ended with {self.process.wait()}"
        return said

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(30) == 0


@contextmanager
def racing(url: str, home: Path) -> Iterator[list[Racer]]:
    racers = [Racer(name, url, home) for name in ("one", "other")]
    try:
        assert [one.hear() for one in racers] == ["ready", "ready"]
        yield racers
    finally:
        for one in racers:
            if one.process.poll() is None:
                one.end()


def pdf_of(pages: int) -> bytes:
    document = pypdfium2.PdfDocument.new()
    for _ in range(pages):
        document.new_page(200, 200)
    whole = BytesIO()
    document.save(whole)
    document.close()
    return whole.getvalue()


async def put(home: Path, one: Import, content: bytes) -> None:
    """Leave an object as a crash would have left it, right before its commit."""

    async def pieces() -> AsyncIterator[bytes]:
        yield content

    store = DirectoryStore(home / "objects")
    key = object_key(one.org_id, one.document_id, one.import_id, one.round)
    await store.put(key, pieces(), content_type="application/pdf", size=len(content))
    await store.aclose()


async def payload_of(rig: Rig, one: Import) -> dict[str, Any]:
    row = await rig.reminder(one.import_id)
    return {**json.loads(row["payload"]), "number": row["number"]}


async def settle(rig: Rig, item_id: str) -> None:
    one = await rig.advance(await rig.import_of(item_id), Event.SUBMITTING)
    one = await rig.advance(one, Event.ACCEPTED, facts={"backend_job": one.import_id})
    await rig.advance(one, Event.SETTLED, facts={"pages": PAGES, "shown": True})


@pytest.mark.parametrize(
    "catalog_url", ["postgres", pytest.param("sqlite", marks=pytest.mark.soak)], indirect=True
)
@pytest.mark.parametrize(
    "repeats",
    [5, pytest.param(100, marks=[pytest.mark.soak, pytest.mark.timeout(1_800)])],
)
async def test_one_of_two_files_of_70_pages_fits_into_100(
    repeats: int, rig: Rig, catalog_url: str, tmp_path: Path
) -> None:
    content, resumed = pdf_of(PAGES), list[float]()
    await rig.enumerate([ROOT, folder("docs")])
    with racing(catalog_url, tmp_path) as racers:
        for repeat in range(repeats):
            used = repeat * 2 * PAGES
            await set_limit(rig.catalog, rig.org_id, Limit(used + LIMIT), actor="test")
            # In turn, the estimate is far too low, and right.
            size = LARGE if repeat % 2 else len(content)
            names = [f"{repeat}-{side}" for side in "ab"]
            listed = [
                file(name, "docs", content=name, name=f"{name}.pdf", size=size, quick_xor=None)
                for name in names
            ]
            await rig.round(listed)
            for racer, name in zip(racers, names, strict=True):
                one = await rig.import_of(name)
                await put(tmp_path, one, content + name.encode())
                racer.say(json.dumps(await payload_of(rig, one)))
            assert [racer.hear() for racer in racers] == ["read", "read"]
            for racer in racers:
                racer.say("go")
            for racer in racers:
                assert "superseded" not in racer.hear()

            found = {name: await rig.import_of(name) for name in names}
            (held,) = [name for name, one in found.items() if one.hold is Reason.QUOTA]
            (fits,) = [name for name in names if name != held]
            assert {one.state for one in found.values()} == {State.STORED}
            (row,) = await rig.rows(reservations, reservations.c.state == "held")
            assert (row["import_id"], row["pages"]) == (found[fits].import_id, PAGES)
            (waiting,) = await rig.rows(imports, imports.c.id == found[held].import_id)
            assert waiting["detail"] == f"it needs {PAGES} pages, and 30 are free"
            await settle(rig, fits)
            assert (await rig.import_of(held)).hold is Reason.QUOTA

            began = time.monotonic()
            await set_limit(rig.catalog, rig.org_id, Limit(used + 2 * PAGES), actor="test")
            due = await rig.due(found[held].import_id)
            resumed.append(time.monotonic() - began)
            assert resumed[-1] < 5.0
            assert due is not None
            assert due[0] == "submit"
            await settle(rig, held)
            (usage,) = await usage_of(rig.catalog, rig.org_id)
            assert (usage.used, usage.held, usage.over) == (used + 2 * PAGES, 0, 0)
    (books,) = await recount(rig.catalog)
    assert books.drift == []
    print(  # noqa: T201 - the figures are the point
        f"\n{len(resumed)} times one file fitted and one waited; a higher limit made it due after "
        f"{max(resumed):.2f} s at most"
    )
