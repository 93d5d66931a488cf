"""What Graph was reported to do, where it is handled, and how the handling is switched off.

Each row is a quirk of the list that the engine was built against, by its number there. A switch
is a patch that takes the handling out of the running process; ``make mutants`` runs the tests of a
row with it and expects at least one of them to fail. Rows of other rooms are added here too,
whatever folder their tests are in.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from sqlalchemy import select, update

from drivefeed.catalog import deciding, pages, pages_rounds, roots
from drivefeed.catalog.reminders import conclude
from drivefeed.catalog.tables import items
from drivefeed.domain import delta, delta_guards
from drivefeed.domain.delta import TreeItem, plan_page
from drivefeed.domain.errors import Transient
from drivefeed.domain.remote import DeltaPage, ItemKind
from drivefeed.sources.graph import errors, looking, refusals, source, wire
from drivefeed.sources.graph import items as graph_items
from drivefeed.stages import discover, discover_groups, discover_pages
from drivefeed.stages.imports import ImportStage
from drivefeed.stages.transfer import Transfer
from quirks.switch import Switch
from quirks.switches_download import DOWNLOADS
from quirks.switches_told import TOLD

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from quirks.switch import Off


# --- switches: each takes one handling out ------------------------------------------------------


def _page_of(change: Callable[[DeltaPage], DeltaPage]) -> Off:
    """Read pages, and then understand them in another way."""
    original = graph_items.page_of

    def off(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(source, "page_of", lambda body, base: change(original(body, base)))

    return off


def _ending(page: DeltaPage) -> DeltaPage:
    return replace(page, next_link=None, delta_link=page.next_link or page.delta_link)


def _empty_page_ends(page: DeltaPage) -> DeltaPage:
    return page if page.items else _ending(page)


def _short_page_ends(page: DeltaPage) -> DeltaPage:
    return page if len(page.items) > 1 else _ending(page)


def _no_guard(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(discover_pages, "leads_nowhere", lambda *_: None)


def _no_barren_guard(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(delta_guards, "most_barren", lambda _: 10**9)


def _failures_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    async def forget(self: Any, claim: Any, error: str, delivery: Any) -> None:
        del error, delivery
        async with self.catalog.write("attempt", beside=True) as connection:
            await conclude(connection, claim, due_at=None)

    patch.setattr(ImportStage, "attempt_failed", forget)


def _expiry_is_a_fault(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(errors._BY_STATUS, 410, lambda _r, _s, text: Transient(text))
    patch.setattr(errors, "_RESYNC", ("no such code",))


def _difference_by_name(patch: pytest.MonkeyPatch) -> None:
    async def bury(connection: Any, drive_id: str, *, generation: int) -> int:
        seen = select(items.c.name).where(
            items.c.drive_id == drive_id, items.c.generation == generation
        )
        unseen = (items.c.drive_id == drive_id, items.c.generation < generation)
        found = await connection.execute(
            update(items)
            .where(*unseen, items.c.deleted.is_(False), items.c.name.not_in(seen))
            .values(deleted=True, dirty=True)
        )
        await connection.execute(update(items).where(*unseen).values(generation=generation))
        return int(found.rowcount)

    patch.setattr(pages, "bury_unseen", bury)


def _first_wins(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        pages, "plan_page", lambda told, *args, **more: plan_page(told[::-1], *args, **more)
    )


def _orphans_are_decided(patch: pytest.MonkeyPatch) -> None:
    async def decide(*args: Any, **more: Any) -> set[str]:
        connection, drive, known, files = args
        await deciding.decide(connection, drive, known, files, **more)
        return {one.item_id for one in files}

    patch.setattr(pages, "decide", decide)


def _nothing_is_asked_for(patch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: Any) -> None:
        """Leave doubts."""

    patch.setattr(discover, "clear_doubts", nothing)


def _names_of_folders_stay(patch: pytest.MonkeyPatch) -> None:
    def plan(told: Any, known: Any, **more: Any) -> Any:
        plan = plan_page(told, known, **more)

        def old(row: TreeItem) -> TreeItem:
            before = known.get(row.item_id)
            same = before is not None and row.kind is ItemKind.FOLDER
            return replace(row, name=before.name) if same else row

        return replace(plan, rows=tuple(map(old, plan.rows)))

    patch.setattr(pages, "plan_page", plan)


def _nothing_is_passed_on(patch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: Any) -> None:
        """Leave what lies below as it is."""

    patch.setattr(pages, "mark_children_dirty", nothing)


def _outside_is_nobodys_matter(patch: pytest.MonkeyPatch) -> None:
    original = deciding.verdict_of

    def verdict(each: Any, one: TreeItem, line: Any, is_forgotten: bool) -> Any:  # noqa: FBT001
        said = original(each, one, line, is_forgotten)
        if said.gone and not one.deleted and line.alive:
            return replace(said, admitted=True, gone=False, reason=None)
        return said

    patch.setattr(deciding, "verdict_of", verdict)


def _roots_are_taken_for_there(patch: pytest.MonkeyPatch) -> None:
    async def all_there(_connection: Any, _drive: Any, known: Any, **_: Any) -> list[Any]:
        return list(known)

    for room in (deciding, roots):
        patch.setattr(room, "rooted_connections", all_there)


def _roots_by_name(patch: pytest.MonkeyPatch) -> None:
    original = roots.rooted_connections

    async def named(connection: Any, drive: Any, known: Any, **more: Any) -> list[Any]:
        there = await original(connection, drive, known, **more)
        rows = await connection.execute(select(items.c.item_id).where(items.c.name == "docs"))
        ids = set(rows.scalars())
        return [each for each in there if each.root_item_id in ids]

    for room in (deciding, roots):
        patch.setattr(room, "rooted_connections", named)


def _halves_are_whole(patch: pytest.MonkeyPatch) -> None:
    async def as_told(_catalog: Any, _source: Any, _drive: Any, page: DeltaPage) -> DeltaPage:
        return page

    patch.setattr(discover_pages, "completed", as_told)


def _restored_folders_are_strange(patch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: Any) -> None:
        """Leave it to a person."""

    patch.setattr(discover, "welcome_restored_folders", nothing)


def _every_namesake_is_the_folder(patch: pytest.MonkeyPatch) -> None:
    async def yes(*_: Any) -> bool:
        return True

    patch.setattr("drivefeed.catalog.tree_identity._is_the_same", yes)


def _deleted_is_not_selected(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(wire, "SELECT", tuple(one for one in wire.SELECT if one != "deleted"))


def _item_of(**without: Any) -> Off:
    """Read items without some of their facets."""
    original = wire.read_item

    def off(patch: pytest.MonkeyPatch) -> None:
        def read(raw: Any) -> Any:
            item, clear = original(raw)
            for name, value in without.items():
                setattr(item, name, value)
            return item, clear

        patch.setattr(wire, "read_item", read)

    return off


def _silence_is_removal(patch: pytest.MonkeyPatch) -> None:
    original = pages.apply_page

    async def apply(catalog: Any, drive: Any, page: DeltaPage) -> Any:
        if page.delta_link and not drive.enumerating and not page.items[1:]:
            async with catalog.write("page") as connection:
                await connection.execute(
                    update(items)
                    .where(items.c.drive_id == drive.drive_id, items.c.kind == "file")
                    .values(deleted=True, dirty=True)
                )
        return await original(catalog, drive, page)

    patch.setattr(pages, "apply_page", apply)


def _unseen_is_there(patch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: Any, **__: Any) -> int:
        return 0

    patch.setattr(pages, "bury_unseen", nothing)


def _failures_begin_anew(patch: pytest.MonkeyPatch) -> None:
    async def anew(catalog: Any, _source: Any, drive: Any) -> None:
        await pages_rounds.begin_enumeration(catalog, drive)

    patch.setattr(discover_pages, "_fresh_start", anew)


def _failures_last_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(discover_pages, "LONGEST_FAILING_MS", 10**15)


def _failures_cost_the_position(patch: pytest.MonkeyPatch) -> None:
    original = discover_pages._fresh_start

    async def fresh(catalog: Any, source_: Any, drive: Any) -> Any:
        since = await pages_rounds.note_failing(catalog, drive)
        if catalog.clock.now() - since > delta_guards.LONGEST_FAILING_MS:
            await pages_rounds.begin_enumeration(catalog, drive)
        return await original(catalog, source_, drive)

    patch.setattr(discover_pages, "_fresh_start", fresh)


def _links_are_taken_apart(patch: pytest.MonkeyPatch) -> None:
    original = source.full_link

    def made(kept: str, base: str) -> str:
        link = original(kept, base)
        drive = link.partition("/drives")[2].strip("/('").partition("'")[0].partition("/")[0]
        token = link.partition("?")[2].partition("token=")[2]
        return f"{base}/drives/{drive}/root/delta?token={token}" if "elta(" in link else link

    patch.setattr(source, "full_link", made)


def _no_link_is_the_end(patch: pytest.MonkeyPatch) -> None:
    original = graph_items.page_of

    def page_of(body: bytes, base: str) -> DeltaPage:
        try:
            return original(body, base)
        except Transient:
            read = wire.read_page(body)
            told = [graph_items.item_of(one) for one in read.value]
            return DeltaPage(tuple(one for one in told if one), None, f"{base}/no/token")

    patch.setattr(source, "page_of", page_of)


def _no_status(status: int) -> Off:
    def off(patch: pytest.MonkeyPatch) -> None:
        patch.delitem(errors._BY_STATUS, status)

    return off


def _unknown_kinds_are_dropped(patch: pytest.MonkeyPatch) -> None:
    original = graph_items.item_of

    def item_of(raw: Any) -> Any:
        one = original(raw)
        return one if one is None or one.deleted or one.kind is not ItemKind.UNKNOWN else None

    patch.setattr(graph_items, "item_of", item_of)


def _only_containers_pass_on(patch: pytest.MonkeyPatch) -> None:
    original = pages.mark_children_dirty

    async def mark(connection: Any, drive_id: str, parents: Any) -> None:
        rows = await connection.execute(
            select(items.c.item_id).where(
                items.c.item_id.in_(list(parents)), items.c.kind.in_(["root", "folder"])
            )
        )
        await original(connection, drive_id, [str(key) for key in rows.scalars()])

    patch.setattr(pages, "mark_children_dirty", mark)


def _no_size_is_empty(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(graph_items, "_size", lambda value: int(value or 0))


def _changed(by: Callable[[Any, Any], bool]) -> Off:
    def off(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(delta, "changed", by)

    return off


def _versions_by_tag(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(delta, "changed", lambda old, new: bool(old.etag != new.etag))
    patch.setattr(delta, "version_key", lambda item: f"etag:{item.etag}")


def _edits_meanwhile_are_not_looked_for(patch: pytest.MonkeyPatch) -> None:
    async def no(*_: Any) -> bool:
        return False

    patch.setattr(Transfer, "_was_edited", no)


def _drive_ids_as_written(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        "drivefeed.catalog.connecting.drive_key", lambda cloud, drive_id: f"{cloud}:{drive_id}"
    )


def _new_ids_are_new_files(patch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: Any) -> None:
        """Know nothing of the old ones."""

    patch.setattr(pages, "follow_new_root", nothing)


def _roots_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    for room in (discover_pages, discover_groups):
        patch.setattr(room, "has_another_root", lambda *_: False)


def _names_are_unescaped(patch: pytest.MonkeyPatch) -> None:
    original = graph_items._text
    patch.setattr(graph_items, "_text", lambda value: original(unquote(value) if value else value))


def _case_does_not_count(patch: pytest.MonkeyPatch) -> None:
    def plan(told: Any, known: Any, **more: Any) -> Any:
        plan = plan_page(told, known, **more)

        def same(row: TreeItem) -> TreeItem:
            before = known.get(row.item_id)
            if before is not None and before.name.casefold() == row.name.casefold():
                return replace(row, name=before.name)
            return row

        return replace(plan, rows=tuple(map(same, plan.rows)))

    patch.setattr(pages, "plan_page", plan)


def _first_page_is_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(looking, "_MOST_PAGES", 1)

    async def listing(self: Any, path: str, asked: str) -> Any:
        return await anext(aiter(self.pages(path, asked)))

    patch.setattr(looking.Look, "listing", listing)


def _everybody_has_a_onedrive(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(refusals, "no_onedrive", lambda *_: None)


def _nothing_leaves(patch: pytest.MonkeyPatch) -> None:
    async def none(*_: Any, **__: Any) -> int:
        return 0

    patch.setattr(pages, "apply_leaving", none)


def _edits_by_time(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(delta, "changed", lambda old, new: bool(old.modified_at != new.modified_at))


def _asked_as_often_as_any(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(discover, "_SELDOM", frozenset())


def _other_accounts_do_not_count(patch: pytest.MonkeyPatch) -> None:
    async def no(*_: Any) -> bool:
        return False

    patch.setattr(discover, "find_other_route", no)


def _links_may_lead_anywhere(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(graph_items, "check_link", lambda link, _: link)


def _ids_are_as_long_as_they_like(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(graph_items, "_LONGEST_ID", 10**6)


def _sizes_are_believed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(graph_items, "_size", lambda value: None if value is None else max(0, int(value)))


def _circles_are_followed(patch: pytest.MonkeyPatch) -> None:
    async def all_of_them(_connection: Any, _drive_id: str, folders: Any) -> list[str]:
        return [one.item_id for one in folders]

    patch.setattr(pages, "rooted_folders", all_of_them)


def _depth_is_a_defect(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(wire, "_UNREADABLE", ())


# --- the table ----------------------------------------------------------------------------------

_ROUNDS, _MOVES = "quirks/test_rounds.py::test_", "quirks/test_moves.py::test_"
_SHAPES, _RIGHTS = "quirks/test_shapes.py::test_", "quirks/test_rights.py::test_"
_BAD = "quirks/test_bad_input.py::test_"
_PAGES, _GRAPH = "catalog.pages", "sources.graph"

SWITCHES = (
    Switch(
        "1",
        "an empty page that goes on",
        f"{_GRAPH}.items.page_of",
        f"{_ROUNDS}01",
        _page_of(_empty_page_ends),
    ),
    Switch(
        "2a",
        "a page that leads to itself",
        "domain.delta_guards.leads_nowhere",
        f"{_ROUNDS}02_a_page",
        _no_guard,
    ),
    Switch(
        "2b",
        "links spelled anew, the same items",
        "domain.delta_guards.most_barren",
        f"{_ROUNDS}02_links",
        _no_barren_guard,
    ),
    Switch(
        "3",
        "a failed download, and delta goes on",
        "stages.imports.ImportStage.attempt_failed",
        f"{_ROUNDS}03",
        _failures_are_forgotten,
    ),
    Switch(
        "4",
        "410, in all its shapes",
        f"{_GRAPH}.errors.translate",
        f"{_ROUNDS}04",
        _expiry_is_a_fault,
    ),
    Switch(
        "6",
        "a folder made anew under its name",
        "catalog.tree.bury_unseen",
        f"{_ROUNDS}06",
        _difference_by_name,
    ),
    Switch(
        "8",
        "one id several times in a round",
        "domain.delta.plan_page",
        f"{_ROUNDS}08",
        _first_wins,
    ),
    Switch(
        "9a",
        "children before their folders",
        "catalog.deciding.decide",
        f"{_ROUNDS}09_children",
        _orphans_are_decided,
    ),
    Switch(
        "9b",
        "folders that are never sent",
        "stages.discover_doubts.clear_doubts",
        f"{_ROUNDS}09_folders",
        _nothing_is_asked_for,
    ),
    Switch(
        "9c",
        "items told by half",
        "stages.discover_doubts.clear_doubts",
        f"{_ROUNDS}09_an_item",
        _nothing_is_asked_for,
    ),
    Switch(
        "11",
        "a renamed folder tells nothing below it",
        "catalog.tree.save_items",
        f"{_MOVES}11",
        _names_of_folders_stay,
    ),
    Switch(
        "12",
        "a folder moved into scope",
        f"{_PAGES}.settle_some",
        f"{_MOVES}12",
        _nothing_is_passed_on,
    ),
    Switch(
        "13",
        "something moved out of scope",
        "catalog.deciding.verdict_of",
        f"{_MOVES}13",
        _outside_is_nobodys_matter,
    ),
    Switch(
        "14a",
        "the connected folder renamed or moved",
        "catalog.roots.rooted_connections",
        f"{_MOVES}14_the_connected",
        _roots_by_name,
    ),
    Switch(
        "14b",
        "the connected folder gone",
        "catalog.roots.rooted_connections",
        f"{_MOVES}14_a_connected_folder_that",
        _roots_are_taken_for_there,
    ),
    Switch(
        "14c",
        "a folder above it gone",
        "catalog.roots.rooted_connections",
        f"{_MOVES}14_an_ancestor",
        _roots_are_taken_for_there,
    ),
    Switch(
        "14d",
        "it comes back under a new id",
        "catalog.tree_identity.welcome_restored_folders",
        f"{_MOVES}14_a_connected_folder_restored",
        _restored_folders_are_strange,
    ),
    Switch(
        "14e",
        "another folder takes its name",
        "catalog.tree_identity._is_the_same",
        f"{_MOVES}14_another",
        _every_namesake_is_the_folder,
    ),
    Switch(
        "15",
        "a tombstone of an id alone",
        f"{_PAGES}.settle_some",
        f"{_MOVES}15",
        _nothing_is_passed_on,
    ),
    Switch(
        "16a",
        "$select strips the tombstone facet",
        f"{_GRAPH}.wire.SELECT",
        f"{_MOVES}16_the_answer",
        _deleted_is_not_selected,
    ),
    Switch(
        "16b",
        "@removed instead of deleted",
        f"{_GRAPH}.items.item_of",
        f"{_MOVES}16_removed",
        _item_of(removed=None),
    ),
    Switch(
        "17a",
        "silence about what is there",
        f"{_PAGES}.apply_page",
        f"{_ROUNDS}17",
        _silence_is_removal,
    ),
    Switch(
        "17c",
        "tombstones that delta never shows",
        "catalog.tree.bury_unseen",
        "quirks/test_told.py::test_17",
        _unseen_is_there,
    ),
    Switch(
        "18c",
        "silence about what lags behind",
        f"{_PAGES}.apply_page",
        "quirks/test_told.py::test_18_silence",
        _silence_is_removal,
    ),
    Switch(
        "18a",
        "delta lags behind the items",
        "stages.transfer.Transfer._was_edited",
        f"{_MOVES}18",
        _edits_meanwhile_are_not_looked_for,
    ),
    Switch(
        "19",
        "pages of any size",
        f"{_GRAPH}.items.page_of",
        f"{_ROUNDS}19",
        _page_of(_short_page_ends),
    ),
    Switch(
        "22a",
        "5xx in the middle of a listing",
        "stages.discover_pages.follow_page",
        f"{_ROUNDS}22_a_listing",
        _failures_begin_anew,
    ),
    Switch(
        "22b",
        "a link that fails for hours",
        "stages.discover_pages._fresh_start",
        f"{_ROUNDS}22_a_link",
        _failures_last_for_ever,
    ),
    Switch(
        "22c",
        "a service that is down for hours",
        "stages.discover_pages._fresh_start",
        f"{_ROUNDS}22_a_service",
        _failures_cost_the_position,
    ),
    Switch(
        "26",
        "links in another form",
        f"{_GRAPH}.links.full_link",
        f"{_ROUNDS}26",
        _links_are_taken_apart,
    ),
    Switch(
        "28a",
        "a drive that is gone answers 400",
        f"{_GRAPH}.errors._not_understood",
        f"{_RIGHTS}28",
        _no_status(400),
    ),
    Switch(
        "28b",
        "the same, asked about for days",
        "stages.discover.Discover.run",
        f"{_RIGHTS}28",
        _asked_as_often_as_any,
    ),
    Switch(
        "29",
        "neither nextLink nor deltaLink",
        f"{_GRAPH}.items.page_of",
        f"{_ROUNDS}29",
        _no_link_is_the_end,
    ),
    Switch(
        "30",
        "packages, neither file nor folder",
        f"{_GRAPH}.items.kind_of",
        f"{_SHAPES}30",
        _item_of(package=None),
    ),
    Switch(
        "31a",
        "things of no known kind",
        f"{_GRAPH}.items.kind_of",
        f"{_SHAPES}31_what",
        _unknown_kinds_are_dropped,
    ),
    Switch(
        "31b",
        "things of no known kind, with children",
        f"{_PAGES}.settle_some",
        f"{_SHAPES}31_a_thing",
        _only_containers_pass_on,
    ),
    Switch("32", "no size", f"{_GRAPH}.items._size", f"{_SHAPES}32", _no_size_is_empty),
    Switch(
        "33",
        "a hash that appears later",
        "domain.identity.changed",
        f"{_SHAPES}33",
        _changed(lambda old, new: old.quick_xor != new.quick_xor),
    ),
    Switch(
        "35", "tags that change alone", "domain.identity.changed", f"{_SHAPES}35", _versions_by_tag
    ),
    Switch(
        "37",
        "no cTag in business delta",
        "domain.identity.changed",
        f"{_SHAPES}37",
        _changed(lambda _old, _new: False),
    ),
    Switch(
        "39",
        "drive ids in any spelling",
        "domain.identity.drive_key",
        f"{_SHAPES}39",
        _drive_ids_as_written,
    ),
    Switch(
        "40a",
        "all ids of a drive are new",
        "catalog.tree_identity.follow_new_root",
        f"{_SHAPES}40",
        _new_ids_are_new_files,
    ),
    Switch(
        "40b",
        "another root among the changes",
        "stages.discover_groups.has_another_root",
        f"{_SHAPES}40_another",
        _roots_are_not_compared,
    ),
    Switch("42", "% and # in names", f"{_GRAPH}.items._text", f"{_SHAPES}42", _names_are_unescaped),
    Switch(
        "44",
        "a name that changes its case",
        "domain.delta.plan_page",
        f"{_SHAPES}44",
        _case_does_not_count,
    ),
    Switch(
        "45",
        "shortcuts to other drives",
        f"{_GRAPH}.items.kind_of",
        f"{_SHAPES}45",
        _item_of(remote_item=None),
    ),
    Switch(
        "46",
        "the Personal Vault",
        f"{_GRAPH}.items._is_vault",
        f"{_SHAPES}46",
        _item_of(special=None),
    ),
    Switch(
        "49", "lists in pages", f"{_GRAPH}.looking.Look.pages", f"{_ROUNDS}49", _first_page_is_all
    ),
    Switch(
        "50",
        "a listing too large to be read at once",
        f"{_PAGES}.apply_page",
        f"{_ROUNDS}50",
        _failures_begin_anew,
    ),
    Switch(
        "87",
        "two refusals for no OneDrive",
        f"{_GRAPH}.refusals.no_onedrive",
        f"{_RIGHTS}87",
        _everybody_has_a_onedrive,
    ),
    Switch(
        "88",
        "a site that is locked: 423",
        f"{_GRAPH}.errors._locked",
        f"{_RIGHTS}88",
        _no_status(423),
    ),
    Switch(
        "95",
        "removals reach the index",
        "catalog.leaving.apply_leaving",
        f"{_MOVES}95",
        _nothing_leaves,
    ),
    Switch(
        "96",
        "an edit that changes no time",
        "domain.identity.changed",
        f"{_MOVES}96",
        _edits_by_time,
    ),
    Switch(
        "-",
        "one account loses the right, another has it",
        "stages.discover_routes.find_other_route",
        f"{_RIGHTS}a_right",
        _other_accounts_do_not_count,
    ),
    Switch(
        "-",
        "a change told without the name or the folder",
        "stages.discover_doubts.completed",
        "engine/test_found.py::test_a_move",
        _halves_are_whole,
    ),
    Switch(
        "-",
        "a link to another host",
        f"{_GRAPH}.links.check_link",
        f"{_BAD}a_link",
        _links_may_lead_anywhere,
    ),
    Switch(
        "-",
        "ids of 2,000 characters",
        f"{_GRAPH}.items.item_of",
        f"{_BAD}items",
        _ids_are_as_long_as_they_like,
    ),
    Switch(
        "-", "sizes below nothing", f"{_GRAPH}.items._size", f"{_BAD}values", _sizes_are_believed
    ),
    Switch(
        "-",
        "folders that lie in each other",
        "catalog.tree.rooted_folders",
        f"{_BAD}folders",
        _circles_are_followed,
    ),
    Switch(
        "-", "nesting without end", f"{_GRAPH}.wire.read_page", f"{_BAD}what", _depth_is_a_defect
    ),
    *DOWNLOADS,
    *TOLD,
)
