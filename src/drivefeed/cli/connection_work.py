"""What the commands about one connection do."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from drivefeed.catalog.audit_log import entries_of
from drivefeed.catalog.control import matching_connections, rename
from drivefeed.catalog.places import Place, places_of
from drivefeed.catalog.sources import policy_from
from drivefeed.cli.context import (
    EXIT_NOT_CLEAN,
    existing_catalog,
    existing_parts,
    os_user,
    run,
)
from drivefeed.cli.control import was_disconnected
from drivefeed.cli.output import escape, new_table, on_terminal, print_json, say
from drivefeed.cli.plan import plan_dict, tell_plan
from drivefeed.cli.words import count_of, instant_of
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.model import Policy
from drivefeed.domain.policies import differences, policy_of, policy_words
from drivefeed.domain.reasons import Reason
from drivefeed.services.plan import apply_plan, plan_change

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drivefeed.catalog.audit_log import Entry
    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.model import Connection
    from drivefeed.domain.plan import Plan


async def one_connection(catalog: Catalog, which: str) -> Connection:
    """Return the connection that is meant.

    Raises:
        NeedsAttention: there is none, or there are several.
    """
    found = await matching_connections(catalog, which)
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(one.connection_id for one in found)
        raise NeedsAttention(
            f"Several connections are called '{which}'; name one by its id: {ids}.",
            reason=Reason.MISCONFIGURED,
        )
    names = ", ".join(f"'{one.name}'" for one in await matching_connections(catalog, None))
    raise NeedsAttention(
        f"There is no connection '{which}'. "
        + (f"There are {names}." if names else "Connect a folder with 'drivefeed connect'."),
        reason=Reason.MISCONFIGURED,
    )


def list_connections(*, as_json: bool) -> None:
    """List all connections."""
    found = run(_places())
    if as_json:
        print_json([_place_dict(one) for one in found])
        return
    if not found:
        say("No folder is connected yet.")
        return
    table = new_table("connection", "drive", "folder", "wants", "")
    for one in found:
        still = _still(one.connection)
        paused = f"[dark_orange3]{still}[/]" if still else ""
        table.add_row(
            *(escape(one.connection.name), escape(one.drive_name), escape(f"/{one.folder}")),
            *(escape(_wants(one.connection.policy)), paused),
        )
    say(table)


async def _places() -> list[Place]:
    async with existing_catalog() as catalog:
        return await places_of(catalog)


def _still(each: Connection) -> str:
    """Return a word for why nothing flows; empty where it does."""
    return "disconnected" if each.disconnected else "paused" if each.paused else ""


def _wants(policy: Policy) -> str:
    changed = differences(Policy(), policy)
    return "; ".join(f"{name} {after}" for name, _, after in changed) or "everything"


def _place_dict(one: Place) -> dict[str, Any]:
    each = one.connection
    return {
        "connection_id": each.connection_id,
        "name": each.name,
        "account": one.account_name,
        "drive": one.drive_name,
        "drive_id": one.remote_drive_id,
        "folder": one.folder,
        "folder_id": each.root_item_id,
        "url": one.url,
        "declared": one.declared,
        "paused": each.paused,
        "disconnected": each.disconnected,
        "attention": each.attention,
        "policy": policy_words(each.policy),
        "plan": one.plan,
    }


def show_connection(which: str, *, as_json: bool) -> None:
    """Show one connection."""
    one, entries = run(_shown(which))
    if as_json:
        print_json({**_place_dict(one), "changes": [asdict(entry) for entry in entries]})
        return
    table = new_table("option", "value")
    for name in ("name", "account", "drive", "drive_id", "folder", "folder_id", "url"):
        value = _place_dict(one)[name]
        if value is not None:
            table.add_row(name, escape(str(value)))
    for name, words in policy_words(one.connection.policy).items():
        table.add_row(name, escape(words))
    say(table)
    if still := _still(one.connection):
        say(f"It is {still}.")
    if one.plan:
        say(
            f"Planned at {instant_of(one.plan['at'])}: {count_of(one.plan['files'], 'file')}, "
            f"about {count_of(one.plan['pages'], 'page')}."
        )
    for entry in entries:
        say(f"{instant_of(entry.at)}  {escape(entry.actor)}  {entry.action}{_told(entry)}")


def _told(entry: Entry) -> str:
    """Say what an entry of the audit log changed."""
    before, after = entry.before or {}, entry.after or {}
    changed = [
        f"{name}: {before[name]} → {after[name]}"
        for name in before
        if name != "policy" and name in after and before[name] != after[name]
    ]
    if "policy" in before and "policy" in after:
        old, new = (policy_from(json.dumps(one["policy"])) for one in (before, after))
        changed += [f"{name}: {was} → {now}" for name, was, now in differences(old, new)]
    return escape(f"  {'; '.join(changed)}") if changed else ""


async def _shown(which: str) -> tuple[Place, list[Entry]]:
    async with existing_catalog() as catalog:
        meant = await one_connection(catalog, which)
        (place,) = await places_of(catalog, meant.connection_id)
        return place, await entries_of(catalog, meant.connection_id)


def rename_connection(which: str, name: str, *, as_json: bool) -> None:
    """Give a connection another name."""
    before = run(_renamed(which, name))
    if as_json:
        print_json({"before": before, "name": name})
    else:
        say(f"'{escape(before)}' is called '{escape(name)}' now.")


async def _renamed(which: str, name: str) -> str:
    async with existing_catalog() as catalog:
        meant = await one_connection(catalog, which)
        await rename(catalog, meant, name, actor=os_user())
        return meant.name


def change_connection(
    which: str, written: Mapping[str, Any], *, plan: bool, apply: bool, as_json: bool
) -> None:
    """Show what other options would do, and change them if that is wished."""
    run(_change(which, written, plan=plan, apply=apply, as_json=as_json))


async def _change(
    which: str, written: Mapping[str, Any], *, plan: bool, apply: bool, as_json: bool
) -> None:
    async with existing_parts() as parts:
        meant = await one_connection(parts.catalog, which)
        if meant.disconnected:
            raise was_disconnected(meant)
        now = parts.catalog.clock.now()
        policy = policy_of(written, now=now, base=meant.policy)
        parts.backends.named(policy.backend)
        found = await plan_change(parts, meant, policy)
        is_news = policy != meant.policy
        if not as_json:
            tell_plan(found, with_change=is_news)
        if is_news and not plan:
            apply = apply or (not as_json and on_terminal() and typer.confirm("Change it?"))
        if is_news and apply:
            await apply_plan(parts, found, name=meant.name, actor=os_user())
    _say_end(found, is_news=is_news, applied=is_news and apply, plan=plan, as_json=as_json)


def _say_end(found: Plan, *, is_news: bool, applied: bool, plan: bool, as_json: bool) -> None:
    if as_json:
        print_json({"plan": plan_dict(found), "changed": applied})
    elif applied:
        say("[green]Changed.[/] Watch it with 'drivefeed status'.")
    elif not is_news:
        say("Nothing changes.")
    elif plan:
        say("Nothing was changed.")
    else:
        say("Nothing was changed. Say the same with --apply to change it.")
        raise typer.Exit(EXIT_NOT_CLEAN)
