"""``secrets``: which key sealed what, and sealing it anew with the newest."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drivefeed.cli.context import EXIT_NOT_CLEAN
from drivefeed.cli.once import Commands

if TYPE_CHECKING:
    from drivefeed.secrets.ring import KeyRing

secrets_app = Commands(
    name="secrets",
    help="The keys that seal secrets in the catalog.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["--help", "-h"]},
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs, and nothing else.")]


@secrets_app.command()
def status(*, as_json: Json = False) -> None:
    """Show which keys there are and what each sealed; exit code 1 if one is missing."""
    from drivefeed.cli.context import run
    from drivefeed.cli.output import escape, new_table, print_json, say

    answer = run(_status())
    missing = [one["key_id"] for one in answer["keys"] if not one["here"] and one["sealed"]]
    if as_json:
        print_json(answer)
    else:
        say(f"Keys come from {escape(answer['place'])}.")
        table = new_table("key", "", "sealed", right=frozenset({"sealed"}))
        for one in answer["keys"]:
            what = "seals" if one["newest"] else "opens" if one["here"] else "[red]missing[/]"
            table.add_row(one["key_id"], what, str(one["sealed"]))
        say(table)
        if missing:
            say(
                "Bring the missing key back as a further one; what it sealed cannot be opened "
                "without it."
                if any(one["here"] for one in answer["keys"])
                else "The file is gone. Bring it back from its copy; what is sealed cannot be "
                "opened without it."
            )
        elif not answer["keys"]:
            say("There is no key yet; 'drivefeed init' or the first secret makes it.")
        elif answer["to_do"]:
            say("Run 'drivefeed secrets rotate' to seal everything with the newest key.")
    if missing:
        raise typer.Exit(EXIT_NOT_CLEAN)


async def _status() -> dict[str, Any]:
    from drivefeed.account_parts import open_ring
    from drivefeed.bootstrap import open_memory
    from drivefeed.catalog.credentials import census
    from drivefeed.cli.context import existing_settings

    settings = existing_settings()
    ring = open_ring(settings)
    async with open_memory(settings) as catalog:
        sealed = await census(catalog)
    is_gone = await asyncio.to_thread(lambda: ring.wants_first_key)
    here = [] if is_gone else await asyncio.to_thread(lambda: ring.key_ids)
    keys = [
        {
            "key_id": key_id,
            "newest": key_id in here[:1],
            "here": key_id in here,
            "sealed": sealed.get(key_id, 0),
        }
        for key_id in dict.fromkeys([*here, *sealed])
    ]
    to_do = sum(count for key_id, count in sealed.items() if key_id not in here[:1])
    return {"place": ring.place.name, "keys": keys, "to_do": to_do}


@secrets_app.command()
def rotate(
    *,
    new_key: Annotated[
        bool, typer.Option("--new-key", help="Put a new key into the key file first.")
    ] = False,
    drop_old: Annotated[
        bool,
        typer.Option(
            "--drop-old", help="Take keys that seal nothing any more out of the key file."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Seal everything with the newest key; started again, it goes on where it was.

    Exit code 1 if something could not be opened and was left as it is.
    """
    if new_key and drop_old:
        raise typer.BadParameter(
            "Say --drop-old in a later run, when every running process has seen the new key."
        )

    from drivefeed.cli.context import run
    from drivefeed.cli.output import escape, print_json, say
    from drivefeed.cli.words import count_of

    answer = run(_rotate(new_key=new_key, drop_old=drop_old))
    if as_json:
        print_json(answer)
    else:
        say(f"{count_of(answer['resealed'], 'secret')} sealed anew with key {answer['key_id']}.")
        for one in answer["refused"]:
            say(f"{escape(one['account'])}: {escape(one['words'])}")
        if answer["dropped"]:
            say(f"{count_of(len(answer['dropped']), 'old key')} taken out of the key file.")
    if answer["refused"]:
        raise typer.Exit(EXIT_NOT_CLEAN)


async def _rotate(*, new_key: bool, drop_old: bool) -> dict[str, Any]:
    from drivefeed.account_parts import open_ring
    from drivefeed.bootstrap import open_memory
    from drivefeed.catalog.credentials import census, ensure_key
    from drivefeed.catalog.resealing import note_rotation, reseal_some
    from drivefeed.cli.context import existing_settings, os_user

    settings = existing_settings()
    ring = open_ring(settings)
    resealed, refused, last = 0, [], ""
    dropped: list[str] = []
    async with open_memory(settings) as catalog:
        async with catalog.read() as connection:
            made = await ensure_key(connection, ring)
        if new_key and not made:
            await asyncio.to_thread(_add_key, ring)
        while True:
            step = await reseal_some(catalog, ring, beyond=last)
            resealed += step.done
            refused += [{"account": name, "words": words} for name, words in step.refused]
            if step.last is None:
                break
            last = step.last
        if resealed:
            key_id = await asyncio.to_thread(lambda: ring.newest.key_id)
            await note_rotation(catalog, key_id=key_id, actor=os_user())
        if drop_old:
            dropped = await asyncio.to_thread(_drop_keys, ring, set(await census(catalog)))
    key_id = await asyncio.to_thread(lambda: ring.newest.key_id)
    return {"key_id": key_id, "resealed": resealed, "refused": refused, "dropped": dropped}


def _add_key(ring: KeyRing) -> None:
    """Put a new key first; a running daemon sees it at its next look at the file."""
    from drivefeed.secrets.places import KeyFile
    from drivefeed.secrets.sealing import Key

    place = ring.place
    if not isinstance(place, KeyFile):
        raise typer.BadParameter(
            f"The keys come from {place.name}; put the new one first there, keep the old one "
            "behind it, start all processes again, then rotate."
        )
    place.replace([Key.new(), *place.load()])


def _drop_keys(ring: KeyRing, used: set[str]) -> list[str]:
    from drivefeed.secrets.places import KeyFile

    place = ring.place
    if not isinstance(place, KeyFile):
        raise typer.BadParameter(f"The keys come from {place.name}; take old ones out there.")
    keys = place.load()
    kept = [key for number, key in enumerate(keys) if number == 0 or key.key_id in used]
    if len(kept) < len(keys):
        place.replace(kept)
    return [key.key_id for key in keys if key not in kept]
