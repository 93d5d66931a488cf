"""Pages and rounds on a real SQLite file: admission, moves, renames, returns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import update

from drivefeed.catalog import pages
from drivefeed.catalog.pages_rounds import begin_enumeration
from drivefeed.catalog.tables import documents, import_events, imports, reminders
from drivefeed.catalog.tree import count_items
from drivefeed.domain.lifecycle import Event, State
from drivefeed.domain.model import Policy
from drivefeed.domain.reasons import Reason
from drivefeed.domain.remote import ItemKind, RemoteItem
from unit.catalog.rig import ROOT, Rig, file, folder, gone

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from support.clock import ManualClock

_TREE = [ROOT, folder("docs"), folder("other"), folder("sub", "docs")]


async def test_a_new_connection_waits_for_its_first_listing_in_peace(rig: Rig) -> None:
    """Its scan finds an empty tree; that must neither end a round nor miss the folder."""
    drive = await rig.drive()
    assert not drive.settling
    assert await rig.attention() is None
    assert drive.last_round_at is None


async def test_files_are_admitted_at_once_while_the_first_enumeration_runs(rig: Rig) -> None:
    await begin_enumeration(rig.catalog, await rig.drive())
    await rig.apply([*_TREE, file("a", "docs")], ends=False)
    assert await rig.wanted() == {"a": "1"}
    one = await rig.import_of("a")
    assert await rig.due(one.import_id) == ("transfer", 0)
    await rig.apply([file("b", "sub"), file("c", "other")], ends=False)
    assert set(await rig.wanted()) == {"a", "b"}


async def test_a_child_that_comes_before_its_parent_waits_for_it(rig: Rig) -> None:
    await begin_enumeration(rig.catalog, await rig.drive())
    await rig.apply([ROOT, file("a", "sub"), folder("docs")], ends=False)
    assert await rig.wanted() == {}
    await rig.apply([folder("sub", "docs")], ends=False)
    await rig.apply([])
    await rig.settle()
    assert await rig.wanted() == {"a": "1"}


async def test_children_and_parents_may_share_a_page_in_any_order(rig: Rig) -> None:
    await rig.enumerate([file("a", "sub"), folder("sub", "docs"), folder("docs"), ROOT])
    assert await rig.wanted() == {"a": "1"}


async def test_a_scan_that_ends_in_the_middle_of_the_enumeration_decides_nothing_too_early(
    rig: Rig,
) -> None:
    await begin_enumeration(rig.catalog, await rig.drive())
    await rig.apply([ROOT, file("a", "sub")], ends=False)
    await rig.connect(policy=Policy(max_bytes=99))
    await rig.scan()
    assert not (await rig.drive()).settling
    await rig.apply([folder("docs"), folder("sub", "docs")])
    await rig.settle()
    assert await rig.wanted() == {"a": "1"}


async def test_a_folder_that_moves_out_during_the_first_enumeration_takes_its_files_along(
    rig: Rig,
) -> None:
    await rig.enumerate([*_TREE, file("a", "sub"), file("b", "docs")], [folder("sub", "other")])
    assert await rig.wanted() == {"b": "1"}


async def test_an_orphan_is_decided_when_its_folder_arrives_in_a_later_round(rig: Rig) -> None:
    await rig.enumerate(_TREE)
    await rig.round([file("a", "late")])
    assert await rig.wanted() == {}
    await rig.round([folder("late", "docs")])
    assert await rig.wanted() == {"a": "1"}


async def test_folders_in_a_circle_end_nothing_and_are_decided_when_it_opens(rig: Rig) -> None:
    await rig.enumerate([*_TREE, folder("x", "sub"), file("a", "x")])
    await rig.round([folder("sub", "x"), folder("x", "sub")])
    await rig.round([folder("sub", "other")])
    assert await rig.wanted() == {}
    await rig.round([folder("sub", "docs")])
    assert await rig.wanted() == {"a": "1"}


async def test_a_page_that_is_replayed_with_an_old_cursor_does_nothing(rig: Rig) -> None:
    drive = await begin_enumeration(rig.catalog, await rig.drive())
    first = rig.page([*_TREE, file("a", "docs")], last=False)
    moved = await pages.apply_page(rig.catalog, drive, first)
    again = await pages.apply_page(rig.catalog, drive, rig.page(gone("a"), last=True))
    assert again == moved
    assert (again.cursor, again.pages_in_round, again.settling) == (first.next_link, 1, False)
    assert await rig.wanted() == {"a": "1"}
    one = await rig.import_of("a")
    assert (await rig.reminder(one.import_id))["number"] == 1


async def test_removals_wait_for_the_end_of_the_round(rig: Rig) -> None:
    await rig.enumerate([*_TREE, file("a", "docs")])
    await rig.apply(gone("a"), ends=False)
    await rig.settle()
    assert await rig.wanted() == {"a": "1"}
    await rig.apply([])
    assert await rig.wanted() == {"a": "1"}
    await rig.settle()
    assert await rig.wanted() == {}


async def test_a_folder_moved_out_takes_its_files_along_and_brings_them_back(rig: Rig) -> None:
    await rig.enumerate([*_TREE, folder("deep", "sub"), file("a", "deep"), file("b", "docs")])
    await rig.bring_live("a")
    await rig.round([folder("sub", "other")])
    assert await rig.wanted() == {"b": "1"}
    assert (await rig.document("a"))["unwanted_reason"] == Reason.OUT_OF_SCOPE
    await rig.round([folder("sub", "docs", name="renamed")])
    assert await rig.wanted() == {"a": "1", "b": "1"}
    one = await rig.import_of("a")
    assert (one.state, one.round) == (State.SETTLED, 1)
    assert await rig.live() == {"a"}


async def test_a_folder_moved_in_brings_its_files(rig: Rig) -> None:
    await rig.enumerate(
        [ROOT, folder("docs"), folder("other"), folder("x", "other"), file("a", "x")]
    )
    assert await rig.wanted() == {}
    await rig.round([folder("x", "docs")])
    assert await rig.wanted() == {"a": "1"}


async def test_a_rename_imports_nothing_and_tells_the_index(rig: Rig) -> None:
    await rig.enumerate([*_TREE, file("a", "docs")])
    one = await rig.bring_live("a")
    await rig.round([file("a", "docs", name="new.txt", etag="renamed")])
    assert len(await rig.rows(imports)) == 1
    row = await rig.document("a")
    assert (row["name"], row["misplaced"], row["seq"]) == ("new.txt", True, 1)
    assert await rig.due(one.import_id) == ("publish", 0)
    told = [event["detail"] for event in await rig.rows(import_events) if event["event"] == "moved"]
    assert told == ["renamed from 'a.txt' to 'new.txt'"]


async def test_renaming_or_moving_a_folder_within_touches_no_reminder_of_its_files(
    rig: Rig,
) -> None:
    await rig.enumerate([*_TREE, file("a", "sub")])
    one = await rig.bring_live("a")
    before = await rig.reminder(one.import_id)
    await rig.round([folder("sub", "docs", name="renamed")])
    assert await rig.reminder(one.import_id) == before


async def test_a_file_moved_between_folders_is_published_not_imported(rig: Rig) -> None:
    await rig.enumerate([*_TREE, file("a", "docs")])
    one = await rig.bring_live("a")
    await rig.round([file("a", "sub")])
    assert len(await rig.rows(imports)) == 1
    assert (await rig.document("a"))["folders"] == '["root", "docs", "sub"]'
    assert await rig.due(one.import_id) == ("publish", 0)


async def test_a_rename_while_the_backend_works_is_published_after_it_settled(rig: Rig) -> None:
    await rig.enumerate([*_TREE, file("a", "docs")])
    one = await rig.import_of("a")
    one = await rig.advance(one, Event.STORED, facts={"sha256": "s", "size": 1})
    one = await rig.advance(one, Event.SUBMITTING)
    one = await rig.advance(one, Event.ACCEPTED, facts={"backend_job": "j"})
    await rig.round([file("a", "docs", name="new.txt")])
    async with rig.catalog.write() as connection:
        # A publish of the version before it took care of the flag.
        await connection.execute(documents.update().values(misplaced=False))
    await rig.advance(one, Event.SETTLED, facts={"pages": 1, "shown": True})
    assert await rig.due(one.import_id) == ("publish", 0)


async def test_an_edit_supersedes_and_a_return_to_the_old_content_costs_no_new_import(
    rig: Rig,
) -> None:
    await rig.enumerate([*_TREE, file("a", "docs", "A")])
    a = await rig.bring_live("a", pages=3)
    await rig.round([file("a", "docs", "B")])
    assert await rig.wanted() == {"a": "B"}
    assert await rig.live() == {"a"}
    await rig.bring_live("a", pages=4)
    a = (await rig.rows(imports, imports.c.id == a.import_id))[0]
    assert a["state"] == State.WITHDRAWING
    await rig.round([file("a", "docs", "A")])
    assert await rig.wanted() == {"a": "A"}
    one = await rig.import_of("a")
    assert one.import_id == a["id"]
    assert await rig.due(one.import_id) == ("withdraw", 0)
    await rig.withdraw(one)
    one = await rig.import_of("a")
    assert (one.state, one.round) == (State.DISCOVERED, 2)
    await rig.bring_live("a", pages=5)
    assert await rig.pages_used() == 7
    assert (await rig.document("a"))["seq"] == 3


async def test_what_a_policy_skips_is_told_with_its_reason(rig: Rig) -> None:
    await rig.enumerate(
        [
            *_TREE,
            file("a", "docs"),
            file("exe", "docs", name="x.exe"),
            file("empty", "docs", size=0),
            RemoteItem("note", parent_id="docs", name="Notes", kind=ItemKind.PACKAGE),
            RemoteItem("link", parent_id="docs", name="s.txt", kind=ItemKind.SHORTCUT),
            file("outside", "other"),
        ]
    )
    assert await rig.coverage() == {
        "a": None,
        "exe": Reason.UNSUPPORTED_TYPE,
        "empty": Reason.EMPTY_FILE,
        "note": Reason.PACKAGE,
        "link": Reason.SHORTCUT,
    }


async def test_what_lies_in_a_package_belongs_to_it_also_when_listed_child_first(rig: Rig) -> None:
    note = RemoteItem("note", parent_id="docs", name="Notes", kind=ItemKind.PACKAGE)
    await rig.enumerate([note, file("a", "note"), folder("docs"), ROOT])
    assert await rig.coverage() == {"note": Reason.PACKAGE, "a": Reason.PACKAGE}
    assert await rig.wanted() == {}


async def test_a_changed_filter_leaves_and_admits_after_its_scan(rig: Rig) -> None:
    await rig.enumerate([*_TREE, file("a", "docs"), file("b", "docs", name="b.md")])
    await rig.bring_live("a")
    await rig.connect(policy=Policy(types=("md",)))
    assert await rig.due(rig.connections["docs"]) == ("admit", 0)
    await rig.scan()
    assert set(await rig.wanted()) == {"a", "b"}
    await rig.settle()
    assert set(await rig.wanted()) == {"b"}
    assert await rig.coverage() == {"a": Reason.TYPE_NOT_INCLUDED, "b": None}
    assert (await rig.document("a"))["unwanted_reason"] == Reason.OUT_OF_SCOPE
    await rig.connect(policy=Policy())
    await rig.scan()
    await rig.settle()
    assert set(await rig.wanted()) == {"a", "b"}
    assert await rig.live() == {"a"}


async def test_nothing_leaves_before_the_whole_scan_is_counted(rig: Rig) -> None:
    """A scan goes in chunks; a settling in between must not apply what is not counted whole."""
    names = [f"f{number:03}" for number in range(pages.CHUNK + 20)]
    await rig.enumerate(_TREE, [file(name, "docs") for name in names])
    await rig.connect(policy=Policy(types=("md",)))
    assert await pages.scan_some(rig.catalog, rig.connections["docs"])
    await rig.round([])
    assert len(await rig.wanted()) == len(names)
    assert await rig.attention() is None
    await rig.scan()
    await rig.settle()
    assert await rig.attention() == Reason.MASS_REMOVAL
    assert len(await rig.wanted()) == len(names)


async def test_two_nested_connections_share_a_document(rig: Rig) -> None:
    await rig.enumerate([*_TREE, file("a", "sub"), file("b", "docs")])
    await rig.connect("sub")
    await rig.scan("sub")
    await rig.settle()
    assert await rig.coverage("sub") == {"a": None}
    assert len(await rig.rows(documents)) == 2
    await rig.round([folder("sub", "other")])
    assert set(await rig.wanted()) == {"a", "b"}, "the inner connection still wants a"
    assert await rig.coverage() == {"b": None}
    await rig.round(gone("a", "b"))
    assert await rig.wanted() == {}


async def test_forgotten_files_leave_and_stay_away(rig: Rig) -> None:
    await rig.enumerate([*_TREE, file("a", "docs")])
    async with rig.catalog.write() as connection:
        await connection.execute(documents.update().values(forgotten=True))
    await rig.round([file("a", "docs", "2")])
    assert await rig.wanted() == {}
    await rig.round([file("a", "docs", "3")])
    assert await rig.wanted() == {}
    assert await rig.coverage() == {"a": Reason.FORGOTTEN}


async def test_a_file_that_was_gone_when_it_was_to_be_copied_returns(rig: Rig) -> None:
    await rig.enumerate([*_TREE, file("a", "docs")])
    one = await rig.import_of("a")
    await rig.advance(one, Event.REFUSED, reason=Reason.GONE_AT_SOURCE)
    await rig.round([*gone("a"), file("a", "docs")])
    one = await rig.import_of("a")
    assert (one.state, one.round) == (State.DISCOVERED, 2)
    assert await rig.due(one.import_id) == ("transfer", 0)


async def test_a_refused_file_stays_refused_until_it_changes(rig: Rig) -> None:
    await rig.enumerate([*_TREE, file("a", "docs")])
    one = await rig.import_of("a")
    await rig.advance(one, Event.REFUSED, reason=Reason.CORRUPT)
    await rig.round([file("a", "docs", name="renamed.txt")])
    assert (await rig.import_of("a")).state is State.REJECTED
    await rig.round([file("a", "docs", "2")])
    assert (await rig.import_of("a")).state is State.DISCOVERED


async def test_a_new_generation_buries_what_it_did_not_see_only_when_complete(rig: Rig) -> None:
    await rig.enumerate([*_TREE, file("a", "docs"), file("b", "docs")])
    await begin_enumeration(rig.catalog, await rig.drive())
    await rig.apply([*_TREE, file("b", "docs")], ends=False)
    await rig.settle()
    assert set(await rig.wanted()) == {"a", "b"}
    await rig.apply([])
    await rig.settle()
    assert set(await rig.wanted()) == {"b"}


async def test_an_enumeration_that_starts_over_forgets_nothing(rig: Rig) -> None:
    await rig.enumerate([*_TREE, file("a", "docs")])
    for _ in range(2):
        drive = await begin_enumeration(rig.catalog, await rig.drive())
        await rig.apply([ROOT, folder("docs")], ends=False)
    stale = replace(drive, generation=drive.generation - 1)
    assert (await begin_enumeration(rig.catalog, stale)).generation == drive.generation
    await rig.apply([*_TREE, file("a", "docs")])
    await rig.settle()
    assert await rig.wanted() == {"a": "1"}
    assert len(await rig.rows(imports)) == 1


async def test_a_new_enumeration_admits_a_new_file_at_once(rig: Rig) -> None:
    await rig.enumerate([*_TREE, file("a", "docs")])
    await begin_enumeration(rig.catalog, await rig.drive())
    await rig.apply([ROOT, file("early", "sub"), folder("docs")], ends=False)
    assert await rig.wanted() == {"a": "1"}, "sub was not seen in this generation yet"
    await rig.apply([folder("sub", "docs"), file("late", "sub")], ends=False)
    assert set(await rig.wanted()) == {"a", "late"}
    await rig.apply([file("a", "docs")])
    await rig.settle()
    assert set(await rig.wanted()) == {"a", "early", "late"}


async def test_the_passport_starts_with_what_was_listed(rig: Rig) -> None:
    await rig.enumerate([*_TREE, file("a", "docs")])
    (event,) = await rig.rows(import_events)
    assert (event["event"], event["detail"]) == (
        "admitted",
        "a.txt, 10 bytes as listed, quickxor:1",
    )


@pytest.mark.slow
async def test_a_round_of_five_thousand_files(
    catalog: Catalog, clock: ManualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    import time

    rig = await Rig.make(catalog)
    await rig.connect()
    started = time.monotonic()
    folders = [folder(f"d{number}", "docs") for number in range(50)]
    files = [file(f"f{number}", f"d{number % 50}") for number in range(5_000)]
    await rig.enumerate(
        [ROOT, folder("docs"), *folders],
        *(files[start : start + 200] for start in range(0, 5_000, 200)),
    )
    listed = time.monotonic()
    await rig.round([folder("docs", "root", name="renamed")])
    renamed = time.monotonic()
    with capsys.disabled():
        print(  # noqa: T201 - a figure to read, which no assertion could hold to
            f"\n5,000 files listed in {listed - started:.1f} s, "
            f"their folder renamed in {renamed - listed:.1f} s"
        )
    assert len(await rig.rows(imports)) == 5_000
    assert len(await rig.rows(reminders, reminders.c.stage == "transfer")) == 5_000
    async with catalog.read() as connection:
        assert await count_items(connection, rig.drive_id) == 5_052


async def test_deaths_do_not_count_against_a_drive_that_gets_on(rig: Rig) -> None:
    """A process that is killed every few seconds was in the middle of a drive each time."""
    await rig.enumerate(_TREE)

    async def die() -> int:
        async with rig.catalog.write() as connection:
            died = update(reminders).where(reminders.c.subject_id == rig.drive_id).values(starts=5)
            await connection.execute(died)
        return int((await rig.reminder(rig.drive_id))["starts"])

    assert await die() == 5
    page = rig.page([file("a", "docs")], last=True)
    await pages.apply_page(rig.catalog, await rig.drive(), page, after_deaths=True)
    assert (await rig.reminder(rig.drive_id))["starts"] == 1
    assert await die() == 5
    assert await pages.settle_some(rig.catalog, rig.drive_id, after_deaths=True)
    assert (await rig.reminder(rig.drive_id))["starts"] == 1
