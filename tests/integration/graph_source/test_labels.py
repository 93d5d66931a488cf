"""Sensitivity labels: asked for file by file, where a connection excludes labelled files."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.catalog.tables import imports
from drivefeed.domain.errors import NeedsAttention, NotFound, Transient
from drivefeed.domain.policies import policy_of
from drivefeed.domain.reasons import Reason
from drivefeed.domain.remote import DriveRef
from drivefeed.services.plan import apply_plan, plan_connection
from drivefeed.sources.graph.labels import _has_labels
from integration.graph_source.kit import account_of, crawl, source_of
from support.offline import Offline, offline

if TYPE_CHECKING:
    from pathlib import Path

    from drivefeed.sources.graph.source import GraphSource
    from graphsim.serving import GraphSim

NOW = 1_800_000_000_000
OP = "extractsensitivitylabels"


@pytest.fixture
def sim_options() -> dict[str, Any]:
    return {"profile": "documentLibrary"}


async def test_a_label_is_told_of_one_file_and_by_no_listing(
    sim: GraphSim, source: GraphSource
) -> None:
    drive, ref = sim.memory, DriveRef("sim", sim.memory.id)
    labelled, plain, shut, later = (
        drive.create_file(f"{name}.docx", b"x") for name in ("labelled", "plain", "shut", "later")
    )
    drive.labels[labelled.id] = ["5feba255-812e-446a-ac59-a7044ef827b5"]
    drive.protected[shut.id] = "fileDoubleKeyEncrypted"
    drive.protected[later.id] = "fileDecryptionDeferred"
    found, _ = await crawl(source, ref)
    assert labelled.id in found
    assert sim.log.count(OP) == 0
    assert await source.is_labelled(ref, labelled.id)
    assert not await source.is_labelled(ref, plain.id)
    assert await source.is_labelled(ref, shut.id), "who may not look into it keeps it out"
    with pytest.raises(Transient, match="sensitivity labels"):
        await source.is_labelled(ref, later.id)
    drive.delete(plain.id)
    with pytest.raises(NotFound):
        await source.is_labelled(ref, plain.id)
    assert sim.log.count(OP) == 5


async def test_where_labels_are_not_told_a_person_is_asked(
    sim: GraphSim, source: GraphSource
) -> None:
    file = sim.memory.create_file("a.docx", b"x")
    assert sim.drive.site is not None
    sim.directory.app.roles = {"Sites.Selected"}
    sim.drive.site.grant(sim.endpoints.client_id, "read")
    found, _ = await crawl(source, DriveRef("sim", sim.memory.id))
    assert file.id in found, "a selected site may be read, and its labels are another right"
    with pytest.raises(NeedsAttention, match="a file's sensitivity labels") as caught:
        await source.is_labelled(DriveRef("sim", sim.memory.id), file.id)
    assert caught.value.reason is Reason.LABELS_UNKNOWN


async def test_personal_accounts_have_none_and_are_not_asked(sim: GraphSim) -> None:
    source = source_of(account_of(sim, tenant_id="consumers"))
    try:
        assert not await source.is_labelled(DriveRef("sim", sim.memory.id), "X")
    finally:
        await source.aclose()
    assert sim.log.count(OP) == 0


@pytest.mark.parametrize(
    ("body", "labelled"),
    [
        (b'{"labels": []}', False),
        (b'{"labels": [{"sensitivityLabelId": "1"}]}', True),
        (b'{"value": {"labels": [{"sensitivityLabelId": "1"}]}}', True),
        (b"{}", False),
    ],
)
def test_both_forms_of_the_answer_are_read(body: bytes, labelled: bool) -> None:  # noqa: FBT001
    assert _has_labels(body) is labelled


@pytest.mark.parametrize("body", [b"", b"[]", b'{"labels": 1}', b"<html>"])
def test_an_answer_that_is_none_is_asked_for_again(body: bytes) -> None:
    with pytest.raises(Transient):
        _has_labels(body)


async def connected(here: Offline, sim: GraphSim, **options: str) -> None:
    policy = policy_of(options, now=NOW)
    plan = await plan_connection(
        here.parts, here.account_id, sim.memory.id, sim.memory.tree.root_id, policy
    )
    assert (plan.labelled, plan.can_be_labelled) == (None, 3)
    await apply_plan(here.parts, plan, name="Library", actor="test")
    await here.play()


async def test_labelled_files_are_left_out_where_the_connection_says_so(
    sim: GraphSim, tmp_path: Path
) -> None:
    drive = sim.memory
    labelled = drive.create_file("labelled.docx", b"x" * 10)
    drive.labels[labelled.id] = ["5feba255-812e-446a-ac59-a7044ef827b5"]
    drive.create_file("plain.pdf", b"y" * 10)
    unlucky = drive.create_file("unlucky.xlsx", b"z" * 10)
    drive.create_file("notes.txt", b"n" * 10)
    async with offline(sim, tmp_path / "data") as here:
        sim.faults.add("status", status=403, op=OP, item=unlucky.id, count=1)
        await connected(here, sim, labelled="exclude")
        rows = await here.rows(imports)
        assert Counter((one["state"], one["reason"], one["attention"]) for one in rows) == {
            ("rejected", "labelled", None): 1,
            ("discovered", None, "labels_unknown"): 1,
            ("stored", None, None): 2,
        }
        # Nothing of what is left out was fetched; what can carry no label was not asked about.
        assert sim.log.count("download") == 2
        assert sim.log.count(OP) == 3


async def test_without_the_option_nobody_is_asked(sim: GraphSim, tmp_path: Path) -> None:
    for name in ("a.docx", "b.pdf", "c.xlsx", "d.txt"):
        sim.memory.labels[sim.memory.create_file(name, b"x").id] = ["1"]
    async with offline(sim, tmp_path / "data") as here:
        await connected(here, sim)
        assert {row["state"] for row in await here.rows(imports)} == {"stored"}
    assert sim.log.count(OP) == 0
