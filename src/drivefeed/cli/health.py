"""``health``: one question to the daemon, for those who restart what is ill."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import typer

from drivefeed.cli.context import EXIT_NOT_CLEAN, door_of, run, settings_for_commands
from drivefeed.cli.output import escape, print_json, say

if TYPE_CHECKING:
    from drivefeed.settings import Settings

ANSWER_SECONDS = 5.0


def show_health(*, strict: bool, as_json: bool) -> None:
    """Ask, and end with 1 where the answer is no."""
    found = run(health_of(settings_for_commands()))
    down = found.get("down", {})
    if as_json:
        print_json(found)
    else:
        mark = "[green]✓[/]" if found["status"] == "ok" else "[red]✗[/]"
        say(f"{mark} {escape(found['words'])}")
        for words in found.get("stuck", {}).values():
            say(f"[red]{escape(words)}[/]", indent=2)
        for part, words in down.items():
            say(f"[yellow]The {escape(part)} is waited for:[/] {escape(words)}", indent=2)
    if found["status"] != "ok" or (strict and down):
        raise typer.Exit(EXIT_NOT_CLEAN)


async def health_of(settings: Settings) -> dict[str, Any]:
    """Return what the daemon says of itself, within five seconds.

    Returns:
        ``status`` (``ok``, ``stuck``, ``silent`` or ``absent``) and ``words``; of a daemon that
        answers also ``stuck`` and ``down``, each with sentences by name.
    """
    door = door_of(settings)
    if door is None:
        words = f"No drivefeed runs on '{settings.data_dir}', or it has not started yet."
        return {"status": "absent", "words": words}
    import httpx

    # Reading the certificates of the usual authorities would take 20 ms, and none is needed here.
    transport = httpx.AsyncHTTPTransport(uds=str(door), verify=False)
    try:
        async with (
            asyncio.timeout(ANSWER_SECONDS),
            httpx.AsyncClient(transport=transport, base_url="http://daemon") as client,
        ):
            found: dict[str, Any] = (await client.get("/healthz", timeout=None)).json()
    except (httpx.HTTPError, ValueError, TimeoutError):
        words = f"The daemon does not answer within {ANSWER_SECONDS:.0f} seconds."
        return {"status": "silent", "words": words}
    words = "It answers, and everything of it turns."
    if found["status"] != "ok":
        words = "It answers, but does not do its work. Restart it: nothing is lost."
    return found | {"words": words}
