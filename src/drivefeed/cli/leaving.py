"""What the commands about leaving do: disconnect, receipt, forget."""

from __future__ import annotations

import typer

from drivefeed.catalog.erasing import disconnect, withdraw_some
from drivefeed.catalog.forgetting import forget, forgotten_ids, remember
from drivefeed.catalog.passport import near_misses, passports
from drivefeed.catalog.receipts import Receipt, receipts
from drivefeed.cli.asking import confirmed, say_files
from drivefeed.cli.connection_work import one_connection
from drivefeed.cli.context import (
    EXIT_NOT_CLEAN,
    door_of,
    existing_catalog,
    existing_settings,
    os_user,
    run,
)
from drivefeed.cli.output import escape, print_json, say
from drivefeed.cli.words import count_of, instant_of
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason


def disconnect_one(which: str, *, erase: bool, sign_out: bool, yes: bool, as_json: bool) -> None:
    """Disconnect a connection, and keep or erase what it brought."""
    receipt = run(_disconnect(which, erase=erase, sign_out=sign_out, yes=yes, as_json=as_json))
    if as_json:
        print_json(receipt.as_dict())
        return
    _say_receipt(receipt)
    if receipt.ended_at is None and not door_of(existing_settings()):
        say("[dim]A running drivefeed does it; none runs now.[/]")


async def _disconnect(
    which: str, *, erase: bool, sign_out: bool, yes: bool, as_json: bool
) -> Receipt:
    async with existing_catalog() as catalog:
        each = await one_connection(catalog, which)
        words = (
            f"Erase all that '{each.name}' brought: objects, points and names? It cannot be undone"
        )
        refusal = f"{words}; say the same with --yes. Nothing was changed."
        if erase and not yes and not confirmed(f"{words}.", refusal=refusal, as_json=as_json):
            raise typer.Abort
        receipt = await disconnect(
            catalog, each, erases=erase, signed_out=sign_out, actor=os_user()
        )
        if erase:
            while await withdraw_some(catalog, receipt):
                pass
        return receipt


def show_receipts(which: str | None, *, as_json: bool) -> None:
    """Show the receipts of connections that were disconnected; exit code 1 if there is none."""
    found = [one for one in run(_receipts()) if which in {None, one.connection_id}]
    if as_json:
        print_json([one.as_dict() for one in found])
    elif not found:
        say("There is no receipt.")
    else:
        for one in found:
            _say_receipt(one)
    if not found:
        raise typer.Exit(EXIT_NOT_CLEAN)


async def _receipts() -> list[Receipt]:
    async with existing_catalog() as catalog:
        return await receipts(catalog)


def _say_receipt(one: Receipt) -> None:
    say(f"Connection {one.connection_id}, disconnected {instant_of(one.at)}:")
    if one.policy == "keep":
        say("what it brought stays searchable, and follows the source no more.", indent=2)
    elif one.ended_at is None:
        say(
            f"{count_of(one.documents, 'document')} erased so far; the rest is on its way.",
            indent=2,
        )
    else:
        say(
            f"{count_of(one.documents, 'document')} erased in "
            f"{count_of(one.imports, 'version')}, with objects, points and names; "
            f"{count_of(one.items, 'row')} of the tree; complete {instant_of(one.ended_at)}.",
            indent=2,
        )
        say("Kept: ids, hashes and page counts, on which the ledger stands.", indent=2)
    if one.signed_out:
        say("The credential of its account went too.", indent=2)
    elif one.signs_out:
        say(
            "The credential of its account goes as soon as Microsoft was told to call no more.",
            indent=2,
        )


def forget_files(path: str, *, undo: bool, as_json: bool) -> None:
    """Forget files, or undo that; exit code 1 if there is no such file."""
    paths, near = run(_forget(path, undo=undo))
    if as_json:
        print_json({"remembered" if undo else "forgotten": paths})
    elif paths:
        forgotten = "is forgotten; its" if len(paths) == 1 else "are forgotten; their"
        what = "will be decided about anew" if undo else f"{forgotten} content goes now"
        say_files(paths, what)
    else:
        missing = "is forgotten" if undo else "was imported"
        say(f"No file called '{escape(path)}' {missing}.")
        for each in near:
            say(escape(each), indent=2)
    if not paths:
        raise typer.Exit(EXIT_NOT_CLEAN)


async def _forget(path: str, *, undo: bool) -> tuple[list[str], list[str]]:
    async with existing_catalog() as catalog:
        found = {
            str(one.document["id"]): one.path
            for one in await passports(catalog, path)
            if one.document is not None
        }
        known = await forgotten_ids(catalog, list(found))
        meant = {key: name for key, name in found.items() if (key in known) is undo}
        meant = _only_one(path, meant)
        for key in meant:
            await (remember if undo else forget)(catalog, key, actor=os_user())
        return list(meant.values()), [] if meant else await near_misses(catalog, path)


def _only_one(path: str, found: dict[str, str]) -> dict[str, str]:
    """Return the one file that is meant: what was typed may be the end of several paths.

    Raises:
        NeedsAttention: several are called so.
    """
    whole = {key: name for key, name in found.items() if name == path.strip("/")}
    if len(whole) == 1:
        return whole
    if len(found) > 1:
        names = ", ".join(f"'{name}'" for name in sorted(found.values()))
        raise NeedsAttention(
            f"{len(found)} files are called so: {names}. Name one by its whole path, or by the id "
            "that 'drivefeed why --json' shows; nothing was changed.",
            reason=Reason.MISCONFIGURED,
        )
    return found
