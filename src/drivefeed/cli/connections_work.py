"""What the commands about a file of connections do."""

from __future__ import annotations

import asyncio
import sys
from shlex import quote
from typing import TYPE_CHECKING, Any

import typer

from drivefeed.cli.asking import confirmed
from drivefeed.cli.context import EXIT_TROUBLE, account_parts, os_user, run
from drivefeed.cli.output import escape, print_json, say
from drivefeed.cli.words import count_of
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.services.declaring import apply_declaration, plan_declared

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from drivefeed.services.declaring import Declaration, Step


def declare(
    file: Path, *, apply: bool, prune: bool, count: bool, as_json: bool, yes: bool = False
) -> None:
    """Plan a file of connections, or apply it.

    Args:
        yes: pause without asking, also where most of what was declared left the file.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise NeedsAttention(
            f"'{file}' is no text in UTF-8.", reason=Reason.MISCONFIGURED
        ) from error

    def may_prune(found: Declaration) -> bool:
        return yes or not found.leaves_most or _confirmed(found, file, as_json=as_json)

    found, touched = run(_declare(text, may_prune, apply=apply, prune=prune, count=count))
    if as_json:
        print_json(_answer(found, touched, applied=apply and not found.problems))
    elif found.problems:
        for problem in found.problems:
            sys.stderr.write(f"{file}: {problem}\n")
        sys.stderr.write(
            f"drivefeed: {count_of(len(found.problems), 'problem')} in '{file}'; nothing was "
            "changed.\n"
        )
    else:
        _tell(found, touched, applied=apply, prune=prune)
    if found.problems:
        raise typer.Exit(EXIT_TROUBLE)


def _confirmed(found: Declaration, file: Path, *, as_json: bool) -> bool:
    """Ask whether most of what was declared is to be paused.

    Raises:
        NeedsAttention: there is nobody to ask.
    """
    words = (
        f"'{file}' declares {count_of(len(found.steps), 'connection')}, and --prune would pause "
        f"{len(found.left)} of {found.declared_before} that were declared before"
    )
    refusal = (
        f"{words}: that is more than half, so nothing was changed. If it is the right file, say "
        "the same with --yes."
    )
    return confirmed(f"{words}. Pause them?", refusal=refusal, as_json=as_json)


async def _declare(
    text: str,
    may_prune: Callable[[Declaration], bool],
    *,
    apply: bool,
    prune: bool,
    count: bool,
) -> tuple[Declaration, int]:
    async with account_parts() as parts:
        found = await plan_declared(parts, text, count=count)
        touched = 0
        if apply and not found.problems:
            if prune and found.left and not await asyncio.to_thread(may_prune, found):
                raise typer.Abort
            touched = await apply_declaration(parts, found, actor=os_user(), prune=prune)
    return found, touched


def _tell(found: Declaration, touched: int, *, applied: bool, prune: bool) -> None:
    for step in found.steps:
        _tell_step(step)
        if step.known is not None and step.known.paused and step.wanted.resumed is None:
            name = step.known.name
            still, command = "paused", f"drivefeed resume {quote(name)}"
            if step.known.disconnected:
                still, command = "disconnected", "drivefeed connect"
            say(
                f"[yellow]![/] [bold]{escape(name)}[/] is {still}, and stays so until "
                f"'{escape(command)}'."
            )
    if not found.steps:
        say("[yellow]The file declares no connection.[/]")
    for one in found.left:
        fate = "paused" if prune else "left alone; --prune pauses it"
        say(f"[yellow]-[/] [bold]{escape(one.name)}[/] is not in the file any more: {fate}.")
    same = sum(not step.is_news for step in found.steps)
    if same:
        say(f"{count_of(same, 'connection')} unchanged.")
    if applied:
        say(
            f"[green]Applied:[/] {count_of(touched, 'connection')}."
            if touched
            else "Nothing to do."
        )
    elif any(step.is_news for step in found.steps) or (prune and found.left):
        say("Nothing was changed. 'drivefeed connections apply' does it.")
    else:
        say("Nothing to do.")


def _tell_step(step: Step) -> None:
    name = escape(step.wanted.name)
    counted = ""
    if step.wanted.plan is not None:
        counted = f": {count_of(step.wanted.plan['files'], 'file')}"
    if step.known is None:
        say(f"[green]+[/] [bold]{name}[/] is new, in '{escape(step.wanted.remote.name)}'{counted}")
    elif step.changes:
        say(f"[cyan]~[/] [bold]{name}[/] changes{counted}")
        for option, before, after in step.changes:
            say(f"{option}: {escape(before)} → {escape(after)}", indent=4)


def _answer(found: Declaration, touched: int, *, applied: bool) -> dict[str, Any]:
    return {
        "problems": [
            {"line": one.line, "entry": one.entry, "sentence": one.sentence}
            for one in found.problems
        ],
        "new": [_step_dict(step) for step in found.steps if step.known is None],
        "changed": [_step_dict(step) for step in found.steps if step.known and step.changes],
        "unchanged": [step.wanted.name for step in found.steps if not step.is_news],
        "left": [one.name for one in found.left],
        "applied": applied,
        "touched": touched,
    }


def _step_dict(step: Step) -> dict[str, Any]:
    wanted = step.wanted
    return {
        "name": wanted.name,
        "drive": wanted.remote.name,
        "drive_id": wanted.remote.drive_id,
        "folder_id": wanted.root_item_id,
        "plan": wanted.plan,
        "changes": [
            {"option": option, "before": before, "after": after}
            for option, before, after in step.changes
        ],
    }
