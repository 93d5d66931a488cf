"""``drivefeed notices``: what people were told, and whether a channel works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from drivefeed.cli.once import Commands

if TYPE_CHECKING:
    from drivefeed.services.notices import Channel

notices_app = Commands(
    help="Show what needs somebody and who was told; try a channel.", invoke_without_command=True
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs, and nothing else.")]


@notices_app.callback()
def notices(
    context: typer.Context,
    past: Annotated[int, typer.Option(min=0, help="How many of those that are over to show.")] = 10,
    *,
    as_json: Json = False,
) -> None:
    """List open notices, past ones, and what became of each message."""
    if context.invoked_subcommand is None:
        from drivefeed.cli.context import run

        _show(run(_listed(past)), as_json=as_json)


@notices_app.command("test")
def try_channel(
    channel: Annotated[str, typer.Argument(help="Name of a channel in the settings.")],
    *,
    as_json: Json = False,
) -> None:
    """Send one message by a channel now, and say what the server answered."""
    from drivefeed.cli.context import EXIT_NOT_CLEAN, run
    from drivefeed.cli.output import escape, print_json, say
    from drivefeed.domain.errors import DrivefeedError

    one = _channel(channel)
    try:
        answer, taken = run(_sent(one)), True
    except DrivefeedError as error:
        answer, taken = str(error), False
    if as_json:
        print_json({"channel": channel, "taken": taken, "answer": answer})
    elif taken:
        say(f"[green]The message was taken.[/] The server answered: {escape(answer)}")
    else:
        say(f"[red]The message was not taken.[/] {escape(answer)}")
    if not taken:
        raise typer.Exit(EXIT_NOT_CLEAN)


def _channel(name: str) -> Channel:
    from drivefeed.cli.context import settings_for_commands
    from drivefeed.outward import open_channels
    from drivefeed.system import SystemClock

    channels = open_channels(settings_for_commands(), SystemClock())
    names = [one.subscription.channel for one in channels]
    for one in channels:
        if one.subscription.channel.casefold() == name.casefold():
            return one
    known = f"There are: {', '.join(names)}." if names else "Describe one under [[notices]]."
    raise typer.BadParameter(f"The settings have no channel '{name}'. {known}")


async def _sent(channel: Channel) -> str:
    from drivefeed.domain.notices import Happening, Message, Severity, Told
    from drivefeed.services.notices import send_within
    from drivefeed.system import SystemClock, SystemIds

    now = SystemClock().now()
    key = SystemIds().new()
    told = Told(
        notice_id=key,
        happening=Happening.OPENED,
        kind="test",
        severity=Severity.NOTICE,
        org="",
        subject="test of this channel",
        words="Somebody asked drivefeed to try this channel. It works.",
        remedy="Nothing.",
        command=f"drivefeed notices test {channel.subscription.channel}",
        reason=None,
        count=1,
        first_at=now,
        last_at=now,
        over_at=None,
    )
    return await send_within(channel, Message(key=f"{key}.test", at=now, told=(told,)))


async def _listed(past: int) -> list[dict[str, Any]]:
    from drivefeed.catalog.notices import list_notices
    from drivefeed.cli.context import existing_catalog

    async with existing_catalog() as catalog:
        return await list_notices(catalog, past=past)


def _show(found: list[dict[str, Any]], *, as_json: bool) -> None:
    from drivefeed.cli.output import print_json, say
    from drivefeed.cli.words import count_of

    if as_json:
        print_json(
            {
                "open": [one for one in found if one["over_at"] is None],
                "past": [one for one in found if one["over_at"] is not None],
            }
        )
        return
    still_open = [one for one in found if one["over_at"] is None]
    past = [one for one in found if one["over_at"] is not None]
    say(f"[bold]{count_of(len(still_open), 'open notice')}[/]" if still_open else "Nothing open.")
    for one in still_open:
        _show_one(one)
    if past:
        say()
        say("[bold]Over[/]")
        for one in past:
            _show_one(one)


_COLOURS = {"urgent": "red", "warning": "yellow", "notice": "cyan"}


def _show_one(one: dict[str, Any]) -> None:
    from drivefeed.cli.output import escape, say
    from drivefeed.cli.words import instant_of

    over = one["over_at"]
    colour = "dim" if over else _COLOURS[one["severity"]]
    where = f" ({one['org']})" if one["org"] else ""
    say()
    say(f"[{colour}]{one['severity']}[/] {escape(one['subject'] + where)}")
    say(escape(one["words"]), indent=2)
    if over is None:
        if one["remedy"]:
            say(f"→ {escape(one['remedy'])}", indent=2)
        if one["command"]:
            say(f"[bold]{escape(one['command'])}[/]", indent=2)
    until = f", over {instant_of(over)}" if over else f", last seen {instant_of(one['last_at'])}"
    say(f"[dim]since {instant_of(one['first_at'])}{until}[/]", indent=2)
    for delivery in one["deliveries"]:
        say(f"[dim]{escape(delivery['channel'])}: {escape(_became(delivery))}[/]", indent=2)
    if not one["deliveries"]:
        say("[dim]nobody was told: no channel of the settings wants it[/]", indent=2)


def _became(delivery: dict[str, Any]) -> str:
    from drivefeed.cli.words import count_of, instant_of

    what = "that it is over " if delivery["happening"] == "over" else ""
    detail = f": {delivery['detail']}" if delivery["detail"] else ""
    tries = count_of(delivery["attempts"], "attempt")
    if delivery["sent_at"]:
        return f"told {what}{instant_of(delivery['sent_at'])}{detail}"
    if delivery["gave_up_at"]:
        return f"given up {what}{instant_of(delivery['gave_up_at'])} after {tries}{detail}"
    if delivery["due_at"] is None:
        return f"not told{detail}"
    if not delivery["attempts"]:
        return f"will be told {what}with the next message"
    return f"not told {what}yet, after {tries}; again {instant_of(delivery['due_at'])}{detail}"
