"""``connect``: show back what an address names and what it meets, then connect it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from drivefeed.cli.context import account_parts, door_of, os_user, run
from drivefeed.cli.output import escape, new_table, on_terminal, print_json, say
from drivefeed.cli.plan import plan_dict, tell_plan
from drivefeed.domain.policies import differences, policy_of, policy_words
from drivefeed.services.choosing import (
    Overlap,
    Relation,
    choose,
    name_for,
    routes_for,
)
from drivefeed.services.plan import apply_plan, plan_connection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from drivefeed.domain.model import Policy
    from drivefeed.domain.plan import Plan
    from drivefeed.services.choosing import Choice

_TOLD_PAGES = 25
_TOLD_FILES = 200
_KINDS = {
    "documentLibrary": "document library",
    "business": "OneDrive for work",
    "personal": "personal OneDrive",
}


@dataclass(frozen=True, slots=True)
class Wish:
    """What was typed.

    Attributes:
        written: options of the policy, as text, by the names of the table of options.
    """

    address: str
    account: str | None
    org: str | None
    name: str | None
    written: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was understood, and what became of it.

    Attributes:
        connection_id: None where nothing was applied and nothing was connected before.
        applied: whether ``--apply`` was said.
        runs: whether a daemon runs on the data folder.
    """

    choice: Choice
    name: str
    policy: Policy
    plan: Plan
    connection_id: str | None
    applied: bool
    runs: bool

    @property
    def changes(self) -> tuple[tuple[str, str, str], ...]:
        """What differs from the connection as it was: (option, before, after)."""
        same = self.choice.same
        return differences(same.policy, self.policy) if same is not None else ()

    @property
    def is_news(self) -> bool:
        """Whether there is anything to apply."""
        same = self.choice.same
        return same is None or same.disconnected or same.name != self.name or bool(self.changes)


def run_connect(wish: Wish, *, apply: bool, as_json: bool) -> None:
    """Understand an address, show it back, and connect it if that is wished."""
    is_watched = not as_json and on_terminal()
    outcome = run(_connect(wish, apply=apply, tell=_tell_listing if is_watched else None))
    if as_json:
        print_json(_json_of(outcome))
    else:
        _tell(outcome)


async def _connect(
    wish: Wish, *, apply: bool, tell: Callable[[int], None] | None = None
) -> Outcome:
    async with account_parts() as parts:
        catalog = parts.catalog
        routes = await routes_for(catalog, parts.accounts, account=wish.account, org=wish.org)
        choice = await choose(catalog, parts.source, routes, wish.address)
        policy = policy_of(
            wish.written,
            now=catalog.clock.now(),
            base=choice.same.policy if choice.same is not None else None,
        )
        parts.backends.named(policy.backend)
        name = await name_for(catalog, choice, wish.name)
        folder = choice.folder
        plan = await plan_connection(
            parts,
            choice.route.account_id,
            folder.drive_id,
            folder.item_id,
            policy,
            tell=tell,
            tell_asked=tell and _tell_asked,
        )
        connection_id = plan.connection_id
        if apply:
            # Not the address as it was pasted: a sharing link opens the folder to whoever has it.
            connection_id = await apply_plan(
                parts, plan, name=name, actor=os_user(), url=folder.web_url
            )
        runs = door_of(parts.settings) is not None
    return Outcome(choice, name, policy, plan, connection_id, apply, runs)


def _tell_listing(pages: int) -> None:
    if pages % _TOLD_PAGES == 0:
        say(f"[dim]{pages} pages of the library are listed …[/]")


def _tell_asked(files: int) -> None:
    if files % _TOLD_FILES == 0:
        say(f"[dim]{files} files' permissions were asked for …[/]")


def _json_of(outcome: Outcome) -> dict[str, Any]:
    choice = outcome.choice
    return {
        "understood": asdict(choice.folder),
        "org": choice.route.org,
        "name": outcome.name,
        "policy": policy_words(outcome.policy),
        "connected_already": choice.same is not None,
        "changes": [
            {"option": name, "before": before, "after": after}
            for name, before, after in outcome.changes
        ],
        "overlaps": [
            {
                "relation": one.relation,
                "connection_id": one.connection.connection_id,
                "name": one.connection.name,
                "path": one.path,
                "meaning": meaning_of(one),
            }
            for one in choice.overlaps
        ],
        "plan": plan_dict(outcome.plan),
        "refused": [{"account": name, "why": why} for name, why in choice.refused],
        "applied": outcome.applied,
        "connection_id": outcome.connection_id,
    }


def _tell(outcome: Outcome) -> None:
    choice = outcome.choice
    table = new_table("understood", "")
    for word, value in _facts(choice):
        table.add_row(word, escape(value))
    say(table)
    for name, why in choice.refused:
        say(f"[dim]The account '{escape(name)}' was tried before: {escape(why)}[/]")
    if choice.asked != choice.route:
        say(
            f"[dim]The account '{escape(choice.asked.name)}' found it; the library is read through "
            f"'{escape(choice.route.name)}' already, and stays so.[/]"
        )
    for one in choice.overlaps:
        say(f"[yellow]{escape(meaning_of(one))}[/]")
    if choice.same is None:
        if not outcome.applied:
            say(f"It will be called '{escape(outcome.name)}'.")
    elif outcome.is_news:
        is_back = choice.same.disconnected
        said = "was disconnected, and is followed again" if is_back else "is connected already"
        more = "; this changes:" if outcome.changes or outcome.name != choice.same.name else "."
        say(f"It {said}, as '{escape(choice.same.name)}'{more}")
        if outcome.name != choice.same.name:
            say(f"name: {escape(choice.same.name)} → {escape(outcome.name)}", indent=2)
        for option, before, after in outcome.changes:
            say(f"{option}: {escape(before)} → {escape(after)}", indent=2)
    else:
        say(f"It is connected already, as '{escape(choice.same.name)}'.")
    tell_plan(outcome.plan, with_options=False, with_change=outcome.is_news)
    _tell_end(outcome)


def _tell_end(outcome: Outcome) -> None:
    if not outcome.is_news:
        verb = "was changed" if outcome.applied else "would change"
        say(f"Nothing {verb}: '{escape(outcome.name)}' is connected with these options already.")
    elif outcome.applied:
        verb = "Changed" if outcome.choice.same is not None else "Connected"
        when = "it begins now" if outcome.runs else "it begins once a daemon runs ('drivefeed up')"
        say(f"[green]{verb}:[/] '{escape(outcome.name)}'; {when}.")
        say("[dim]Watch it with 'drivefeed status'.[/]")
    else:
        say("Nothing was changed. Say the same with --apply to connect it.")


def _facts(choice: Choice) -> Iterator[tuple[str, str]]:
    folder = choice.folder
    yield "account", folder.account_name
    if folder.site_name:
        yield "site", folder.site_name
    yield _KINDS.get(folder.drive_type, "library"), folder.drive_name
    yield "folder", f"/{folder.path}" if folder.path else "all of it"
    yield "address", folder.web_url
    yield "drive id", folder.drive_id
    yield "folder id", folder.item_id


def meaning_of(one: Overlap) -> str:
    """Return what it means that a folder lies inside of a connected one, or contains it."""
    name, path = one.connection.name, f"/{one.path}" if one.path else "the whole library"
    if one.relation is Relation.INSIDE:
        return (
            f"It lies inside of the connection '{name}' ({path}), which stays as it is. Files here "
            "are imported and charged once, and each file stays as long as either of the two wants "
            "it."
        )
    return (
        f"It contains the connection '{name}' ({path}), which stays as it is. Files there are not "
        "imported or charged again, and each stays as long as either of the two wants it."
    )
