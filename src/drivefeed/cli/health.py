"""``health``: one question to each process that runs here, for those who restart what is ill."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from drivefeed.cli.context import EXIT_NOT_CLEAN, door_of, run, settings_for_commands
from drivefeed.cli.output import escape, print_json, say
from drivefeed.web.door import word_of_page, words_of_health

if TYPE_CHECKING:
    from pathlib import Path

    from drivefeed.settings import Settings

ANSWER_SECONDS = 5.0
_WORST_FIRST = ("silent", "stuck", "starting", "ok")
_SERVICE_UNAVAILABLE = 503


@dataclass(frozen=True, slots=True)
class Place:
    """Where a process answers.

    Attributes:
        role: what it is, as far as that is known before it answers.
        socket: asked instead of the address, where there is one.
        is_page: whether it is a status page alone, which says in a word that it is well.
    """

    role: str
    url: str = "http://daemon"
    socket: Path | None = None
    is_page: bool = False


def show_health(*, strict: bool, ready: bool, as_json: bool) -> None:
    """Ask, and end with 1 where the answer is no."""
    found = run(health_of(settings_for_commands(), ready=ready))
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


def places_of(settings: Settings) -> list[Place]:
    """Return where the processes of this machine answer: that of ``health_port`` alone, or all."""
    if settings.health_port is not None:
        host = f"[{settings.health_host}]" if ":" in settings.health_host else settings.health_host
        return [Place("process", f"http://{host}:{settings.health_port}")]
    door = door_of(settings)
    found = [] if door is None else [Place("daemon", socket=door)]
    found += [
        Place(str(one["role"]), str(one["url"])) for one in words_of_health(settings.data_dir)
    ]
    page = word_of_page(settings.data_dir)
    if not found and page is not None:
        found.append(Place("status page", page, is_page=True))
    return found


async def health_of(settings: Settings, *, ready: bool = False) -> dict[str, Any]:
    """Return what the processes of this machine say of themselves, within five seconds.

    Args:
        ready: whether one that starts or ends counts as ill.

    Returns:
        ``status`` (``ok``, ``starting``, ``stuck``, ``silent`` or ``absent``) and ``words``; of
        those that answer also ``stuck`` and ``down``, each with sentences by name, and
        ``processes``, where there are several.
    """
    places = places_of(settings)
    if not places:
        words = f"No drivefeed runs on '{settings.data_dir}', or it has not started yet."
        return {"status": "absent", "words": words}
    found = await asyncio.gather(*(_asked(one, ready=ready) for one in places))
    return found[0] if len(found) == 1 else _together(found)


async def _asked(place: Place, *, ready: bool) -> dict[str, Any]:
    import httpx

    # Reading the certificates of the usual authorities would take 20 ms, and none is needed here.
    socket = place.socket
    transport = httpx.AsyncHTTPTransport(uds=str(socket), verify=False) if socket else None
    try:
        async with (
            asyncio.timeout(ANSWER_SECONDS),
            httpx.AsyncClient(transport=transport, base_url=place.url, trust_env=False) as client,
        ):
            answer = await client.get("/healthz", timeout=None)
            if place.is_page:
                answer.raise_for_status()
                said: dict[str, Any] = {"status": "ok"}
            else:
                said = answer.json()
            if ready and said["status"] == "ok":
                is_ready = await client.get("/readyz", timeout=None)
                if is_ready.status_code == _SERVICE_UNAVAILABLE:
                    said |= {"status": "starting", "words": str(is_ready.json()["words"])}
    except (httpx.HTTPError, ValueError, KeyError, TypeError, TimeoutError):
        words = f"The {place.role} does not answer within {ANSWER_SECONDS:.0f} seconds."
        return {"status": "silent", "role": place.role, "words": words}
    usual = {
        "ok": "It answers, and everything of it turns.",
        "stuck": "It answers, but does not do its work. Restart it: nothing is lost.",
    }
    return {"role": place.role, "words": usual.get(said["status"], ""), **said}


def _together(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one answer for several processes: the worst of them, and what all of them say."""
    worst = min(found, key=lambda one: _WORST_FIRST.index(one["status"]))
    ill = [one for one in found if one["status"] != "ok"]
    told = "; ".join(f"{one['role']}: {one['words']}" for one in ill)
    count = len(found)
    return worst | {
        "words": told or f"All {count} processes answer, and everything of them turns.",
        "stuck": {
            f"{one['role']} {one['pid']}: {name}": words
            for one in found
            for name, words in one.get("stuck", {}).items()
        },
        "down": {name: words for one in found for name, words in one.get("down", {}).items()},
        "processes": [{key: one.get(key) for key in ("role", "pid", "status")} for one in found],
    }
