"""Connections that a file declares: resolved together, compared with the catalog, applied at once.

One bad entry and nothing is applied; what is applied is one transaction.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from drivefeed.catalog.declared import Declared, all_known, apply_declared, place_key
from drivefeed.domain.declared import read_declared
from drivefeed.domain.model import Policy
from drivefeed.domain.policies import declared_policy, differences
from drivefeed.domain.remote import RemoteDrive
from drivefeed.services.naming_places import find_place
from drivefeed.services.plan import figures_of, plan_connection

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from drivefeed.catalog.declared import Known
    from drivefeed.domain.declared import Entry, Problem
    from drivefeed.domain.model import Connection
    from drivefeed.services.naming_places import Found, Places

_AT_A_TIME: Final = 4


@dataclass(frozen=True, slots=True)
class Step:
    """What applying does for one entry: (option, before, after), or everything if it is new."""

    wanted: Declared
    known: Connection | None
    changes: tuple[tuple[str, str, str], ...]

    @property
    def is_news(self) -> bool:
        """Whether there is anything to apply."""
        return self.known is None or bool(self.changes)


@dataclass(frozen=True, slots=True)
class Declaration:
    """A file, understood.

    Attributes:
        left: connections that were declared before and are not in the file any more.
        declared_before: how many connections were declared before.
        problems: everything that is wrong; with any, nothing can be applied.
    """

    steps: tuple[Step, ...]
    left: tuple[Connection, ...]
    declared_before: int
    problems: tuple[Problem, ...]

    @property
    def leaves_most(self) -> bool:
        """Whether more than half of what was declared left the file: it may be the wrong one."""
        return 2 * len(self.left) > self.declared_before


async def plan_declared(parts: Places, text: str, *, count: bool = False) -> Declaration:
    """Understand a file of connections, and tell what applying it would do. Changes nothing.

    Args:
        count: also count what new and changed connections would import, as their plans do. That
            lists their drives.
    """
    catalog = parts.catalog
    entries, problems = read_declared(text, now=catalog.clock.now(), backends=parts.backends.names)
    at_a_time = asyncio.Semaphore(_AT_A_TIME)

    async def find(entry: Entry) -> tuple[Entry, Found | list[Problem]]:
        async with at_a_time:
            return entry, await find_place(parts, entry)

    found = await asyncio.gather(*(find(entry) for entry in entries))
    problems += [one for _, wrong in found if isinstance(wrong, list) for one in wrong]
    known = await all_known(catalog)
    steps = [
        (entry, _step(parts, entry, place, known))
        for entry, place in found
        if not isinstance(place, list)
    ]
    problems += _collisions(steps, known.values())
    if count and not problems:
        steps = [(entry, await _counted(parts, step)) for entry, step in steps]
    places = {place_key(step.wanted) for _, step in steps}
    left = [one.connection for key, one in known.items() if one.declared and key not in places]
    return Declaration(
        tuple(step for _, step in steps),
        # With problems it is not known what the file no longer declares.
        () if problems else tuple(left),
        sum(one.declared for one in known.values()),
        tuple(sorted(problems, key=lambda one: one.line or 0)),
    )


async def apply_declaration(
    parts: Places, declaration: Declaration, *, actor: str, prune: bool = False
) -> int:
    """Apply a declaration as one transaction; return how many connections it touched.

    Args:
        prune: pause what the file does not declare any more. Nothing is ever erased here.

    Raises:
        ValueError: it has problems.
    """
    if declaration.problems:
        raise ValueError("A declaration with problems cannot be applied.")
    wanted = [step.wanted for step in declaration.steps if step.is_news]
    pruned = declaration.left if prune else ()
    if wanted or pruned:
        await apply_declared(parts.catalog, wanted, pruned, actor=actor)
    return len(wanted) + len(pruned)


def _step(
    parts: Places, entry: Entry, found: Found, known: dict[tuple[str, str, str], Known]
) -> Step:
    folder = found.folder
    wanted = Declared(
        org_id=found.route.org_id,
        account_id=found.route.account_id,
        cloud=parts.accounts[found.route.account_id].cloud,
        remote=RemoteDrive(
            folder.drive_id,
            folder.drive_type,
            folder.drive_name,
            folder.drive_url or None,
            folder.root_id,
        ),
        interval_ms=int(parts.settings.poll_seconds * 1000),
        root_item_id=folder.item_id,
        name=entry.name or folder.name,
        policy=Policy(),
        url=entry.url,
    )
    there = known.get(place_key(wanted))
    policy = declared_policy(
        entry.written,
        now=parts.catalog.clock.now(),
        known=there.connection.policy if there is not None else None,
    )
    wanted = replace(wanted, policy=policy)
    if there is None:
        return Step(wanted, None, ())
    changes = list(differences(there.connection.policy, policy))
    if there.connection.name != wanted.name:
        changes.insert(0, ("name", there.connection.name, wanted.name))
    if wanted.url is not None and wanted.url != there.url:
        changes.append(("url", there.url or "none", wanted.url))
    if not there.declared:
        changes.append(("declared by a file", "no", "yes"))
    if there.pruned:
        changes.append(("paused", "yes, since it left the file", "no"))
        wanted = replace(wanted, resumed=there.connection)
    return Step(wanted, there.connection, tuple(changes))


def _collisions(steps: Sequence[tuple[Entry, Step]], known: Iterable[Known]) -> list[Problem]:
    """Two entries for one folder, and names that other connections have."""
    problems: list[Problem] = []
    places: dict[tuple[str, str, str], Entry] = {}
    names: dict[tuple[str, str], Entry] = {}
    taken = {
        (one.connection.org_id, one.connection.name.casefold()): one.connection.connection_id
        for one in known
    }
    staying = {step.known.connection_id for _, step in steps if step.known is not None}
    for entry, step in steps:
        first = places.setdefault(place_key(step.wanted), entry)
        if first is not entry:
            problems.append(
                entry.problem(f"It names the same folder as the entry in line {first.line}.")
            )
            continue
        if not entry.is_named:
            continue
        name = (step.wanted.org_id, step.wanted.name.casefold())
        namesake = names.setdefault(name, entry)
        if namesake is not entry and entry.name is None:
            problems.append(
                entry.problem(
                    f"It would be called '{step.wanted.name}', as the entry in line "
                    f"{namesake.line}; allowed: a name of its own."
                )
            )
        own = step.known.connection_id if step.known is not None else None
        if taken.get(name, own) not in {own, *staying}:
            problems.append(
                entry.problem(
                    f"Another connection is called '{step.wanted.name}' already; allowed: a name "
                    "that no other connection has.",
                    "name",
                )
            )
    return problems


async def _counted(parts: Places, step: Step) -> Step:
    wanted = step.wanted
    if step.known is not None and step.known.policy.scope == wanted.policy.scope:
        return step
    plan = await plan_connection(
        parts, wanted.account_id, wanted.remote.drive_id, wanted.root_item_id, wanted.policy
    )
    return replace(step, wanted=replace(wanted, plan=figures_of(plan)))
