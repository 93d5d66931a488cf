"""``org embedding``: what an organization is embedded with, and what another choice means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import typer

from drivefeed.account_parts import open_ring
from drivefeed.bootstrap import open_memory
from drivefeed.catalog import org_embeddings
from drivefeed.catalog.collections import collections_of
from drivefeed.catalog.listing import org_named
from drivefeed.catalog.org_embeddings import Choice, Wish
from drivefeed.catalog.reindexing import documents_of
from drivefeed.cli.context import existing_settings, os_user, run
from drivefeed.cli.embedding_way import check_fields, read_key, try_embedder, typed_as
from drivefeed.cli.output import escape, print_json, say
from drivefeed.cli.words import count_of
from drivefeed.embedding import index_name
from drivefeed.embedding_of_orgs import Embeddings

if TYPE_CHECKING:
    from pathlib import Path

    from drivefeed.catalog.collection_rows import Made
    from drivefeed.catalog.engine import Catalog
    from drivefeed.settings import Settings

_OPTIONS: Final = typed_as({"api_key": "--key-file or --key-stdin"})
_PLACE: Final = frozenset({"provider", "model", "base_url"})


@dataclass(frozen=True, slots=True)
class Asked:
    """What was typed.

    Attributes:
        fields: options by their names in the settings, those alone that were given.
        installation: be with the installation's embedding again.
        plan: only tell what it would mean.
    """

    fields: dict[str, Any]
    key_file: Path | None = None
    key_stdin: bool = False
    installation: bool = False
    plan: bool = False

    @property
    def is_change(self) -> bool:
        """Whether anything is asked for, or only looked at."""
        return bool(self.fields or self.key_file or self.key_stdin or self.installation)


@dataclass(frozen=True, slots=True)
class Standing:
    """How an organization is embedded.

    Attributes:
        active: what search uses.
        is_own: whether that is a collection of the organization alone.
        wanted: what it asks for; None for the installation's.
        target: what a collection of that would be made with.
        building: what a reindex builds.
        documents: how many versions of documents it has in the index.
        changed: whether this command changed what is asked for.
    """

    org: str
    org_id: str
    active: Made | None
    is_own: bool
    wanted: Choice | None
    target: Made | None
    building: Made | None
    documents: int
    changed: bool = False

    @property
    def needs_reindex(self) -> bool:
        """Whether search uses something else than what is asked for."""
        if self.wanted is None:
            return self.is_own
        used = self.active.choice_id if self.is_own and self.active else None
        return used != self.wanted.choice_id

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values, without any key."""
        return {
            "org": self.org,
            "org_id": self.org_id,
            "own_collection": self.is_own,
            "active": _made_dict(self.active),
            "wanted": self.wanted.wish.as_dict() if self.wanted else None,
            "building": _made_dict(self.building),
            "needs_reindex": self.needs_reindex,
            "documents": self.documents,
            "changed": self.changed,
        }


def choose_embedding(org: str, asked: Asked, *, as_json: bool) -> None:
    """Show what an organization is embedded with, or choose something else."""
    if asked.installation and (asked.fields or asked.key_file or asked.key_stdin):
        raise typer.BadParameter("--installation goes with no other choice.")
    if asked.key_file and asked.key_stdin:
        raise typer.BadParameter("Say only one of --key-file and --key-stdin.")
    if asked.plan and not asked.is_change:
        raise typer.BadParameter("--plan tells what a choice would mean; say which.")
    found = run(_work(org, asked))
    if as_json:
        print_json(found.as_dict())
    else:
        _tell(found, is_plan=asked.plan)


async def _work(org: str, asked: Asked) -> Standing:
    settings = existing_settings()
    async with open_memory(settings) as catalog:
        ring = open_ring(settings)
        org_id = await org_named(catalog, org)
        embeddings = Embeddings(settings, catalog, ring)
        before = await org_embeddings.wanted_by(catalog, ring, org_id)
        if asked.installation:
            if not asked.plan:
                await org_embeddings.choose_none(catalog, ring, org_id, actor=os_user())
            return await _standing(settings, catalog, org, org_id=org_id, changed=not asked.plan)
        wanted = before
        if asked.is_change:
            wish = _wish(asked, before.wish if before else None)
            await try_embedder(embeddings.embedder_of(wish, _OPTIONS))
            if asked.plan:
                stays = before is not None and before.wish.vectors == wish.vectors
                choice_id = before.choice_id if before is not None and stays else ""
                wanted = Choice(choice_id, org_id, wish, 0, wanted=True)
            else:
                wanted = await org_embeddings.choose(catalog, ring, org_id, wish, actor=os_user())
        target = embeddings.made_with(wanted) if wanted else None
        changed = asked.is_change and not asked.plan
        return await _standing(
            settings,
            catalog,
            org,
            org_id=org_id,
            wanted=wanted,
            target=target,
            changed=changed,
        )


async def _standing(
    settings: Settings,
    catalog: Catalog,
    org: str,
    *,
    org_id: str,
    wanted: Choice | None = None,
    target: Made | None = None,
    changed: bool,
) -> Standing:
    index = index_name(settings)
    known = await collections_of(catalog, index, org_id)
    house = await collections_of(catalog, index)
    return Standing(
        org=org,
        org_id=org_id,
        active=known.active or house.active,
        is_own=known.active is not None,
        wanted=wanted,
        target=target,
        building=known.building,
        documents=await documents_of(catalog, org_id),
        changed=changed,
    )


def _wish(asked: Asked, before: Wish | None) -> Wish:
    """Return what was asked for; without a provider, a change of what is chosen already."""
    fields = dict(asked.fields)
    key = read_key(asked.key_file, stdin=asked.key_stdin)
    if "provider" not in fields:
        if before is None:
            raise typer.BadParameter("Name a provider with --provider.")
        fields = {
            "provider": before.provider,
            "model": before.model,
            "base_url": before.base_url,
            **before.options,
            **fields,
        }
        key = key or before.api_key
    check_fields(fields, _OPTIONS)
    options = {name: value for name, value in fields.items() if name not in _PLACE}
    return Wish(
        fields["provider"], fields.get("model", ""), fields.get("base_url", ""), options, key
    )


def _made_dict(made: Made | None) -> dict[str, Any] | None:
    if made is None:
        return None
    return {
        "collection": made.name,
        "provider": made.provider,
        "model": made.model,
        "dimension": made.dimension,
        "distance": made.distance,
    }


def _tell(found: Standing, *, is_plan: bool) -> None:
    name = escape(found.org)
    if found.active is None:
        say(f"Nothing is indexed yet; '{name}' will begin in the installation's collection.")
    else:
        whose = "a collection of its own" if found.is_own else "the installation's collection"
        say(f"Search of '{name}' uses {escape(found.active.words)}, in {whose}.")
    if found.building is not None:
        say(f"{escape(found.building.words)} is being built beside it.")
    if not found.needs_reindex:
        if found.changed:
            say("That is what is asked for. An address or a key counts from now on.")
        return
    asked = escape(found.target.words) if found.target else "the installation's embedding"
    would = "would be" if is_plan else "are"
    say(f"{'This asks' if is_plan else 'It asks'} for {asked}.")
    say(
        f"{count_of(found.documents, 'document')} {would} embedded again, from the copies in the "
        "store: nothing is downloaded, and nothing is charged."
    )
    say(
        f"Search goes on as before until 'drivefeed reindex --org {name}' has built it beside and "
        "swapped."
    )
