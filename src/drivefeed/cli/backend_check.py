"""``backend check``: the conformance kit, with its progress and its table."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import typer

from drivefeed.cli.backend_secret import credential_of
from drivefeed.cli.context import EXIT_NOT_CLEAN, run
from drivefeed.cli.output import escape, new_table, on_terminal, print_json, say
from drivefeed.cli.words import count_of
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.services.conformance.finding import Result, Verdict
from drivefeed.services.conformance.kit import CHECKS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from drivefeed.backends.signing import Credential
    from drivefeed.services.conformance.documents import Documents

_MARKS: Final = {
    Verdict.PASSED: "[green]passed[/]",
    Verdict.FAILED: "[bold red]failed[/]",
    Verdict.NOT_TRIED: "[dim]not tried[/]",
}


@dataclass(frozen=True, slots=True)
class Wishes:
    """What was asked for on the command line."""

    secret_file: Path | None
    auth: str
    only: tuple[str, ...]
    listen: str
    documents: str
    store_keys: tuple[str, ...]
    deadline: float


def check_backend(url: str, wishes: Wishes, *, as_json: bool) -> None:
    """Run the checks and print what they found; exit with 1 where one failed."""
    _require(url, wishes)
    credential = credential_of(wishes.secret_file, wishes.auth)
    total = len(wishes.only) or len(CHECKS)
    tell = _teller(total) if not as_json else lambda _: None
    found = run(_examined(url, wishes, credential, tell))
    failed = [one for one in found if one.verdict is Verdict.FAILED]
    if as_json:
        print_json({"url": url, "passed": not failed, "checks": [asdict(one) for one in found]})
    else:
        _say(url, found, failed)
    if failed:
        raise typer.Exit(EXIT_NOT_CLEAN)


def _require(url: str, wishes: Wishes) -> None:
    from drivefeed.backends.contract import LONGEST_STORE_KEY
    from drivefeed.backends.place import is_usable

    if not is_usable(url):
        raise typer.BadParameter(f"'{url}' is no URL such as https://backend.example.")
    if wishes.documents and not is_usable(wishes.documents):
        raise typer.BadParameter(
            f"--documents '{wishes.documents}' is no URL such as http://checks.example:8080."
        )
    if _is_unspecified(wishes.listen) and not (wishes.documents or wishes.store_keys):
        raise typer.BadParameter(
            f"'{wishes.listen}' is all addresses of this machine, and no backend can fetch from "
            "that. Say with --documents by which one it reaches them."
        )
    if not all(0 < len(one) <= LONGEST_STORE_KEY for one in wishes.store_keys):
        raise typer.BadParameter(f"A --store-key has 1 to {LONGEST_STORE_KEY} characters.")
    unknown = set(wishes.only) - {one.name for one in CHECKS}
    if unknown:
        known = ", ".join(one.name for one in CHECKS)
        raise typer.BadParameter(f"There is no check '{unknown.pop()}'; there are {known}.")


def _is_unspecified(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return not host


async def _examined(
    url: str, wishes: Wishes, credential: Credential | None, tell: Callable[[Result], None]
) -> list[Result]:
    import httpx

    from drivefeed.outbound import Outbound
    from drivefeed.services.conformance.bench import Bench
    from drivefeed.services.conformance.kit import examine
    from drivefeed.services.conformance.speaker import Speaker
    from drivefeed.system import SystemClock, SystemIds

    transport = await asyncio.to_thread(Outbound.from_environment().transport)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            httpx.AsyncClient(transport=transport, timeout=60.0, trust_env=False)
        )
        documents = None
        if not wishes.store_keys:
            documents = await stack.enter_async_context(_served(wishes))
        speaker = Speaker(url, credential, client, clock=SystemClock(), ids=SystemIds())
        bench = Bench(speaker, documents, wishes.store_keys, deadline=wishes.deadline)
        return await examine(bench, only=wishes.only, on_result=tell)


@asynccontextmanager
async def _served(wishes: Wishes) -> AsyncIterator[Documents]:
    """Serve the kit's documents where the backend is said to reach them.

    Raises:
        NeedsAttention: the address cannot be bound.
    """
    from drivefeed.services.conformance.documents import serving

    port = urlsplit(wishes.documents).port or 0
    async with AsyncExitStack() as stack:
        try:
            documents = await stack.enter_async_context(
                serving(wishes.listen, port, base=wishes.documents)
            )
        except OSError as error:
            raise NeedsAttention(
                f"The documents of the checks cannot be served on {wishes.listen} port "
                f"{port or 'of any number'}: {error.strerror or error}. Name another address of "
                "this machine with --listen, or another port in --documents.",
                reason=Reason.MISCONFIGURED,
            ) from error
        yield documents


def _teller(total: int) -> Callable[[Result], None]:
    """Return what prints each check as it ends, on a terminal."""
    ended = [0]

    def tell(one: Result) -> None:
        ended[0] += 1
        if on_terminal():
            say(f"[dim]{ended[0]:>2}/{total}[/] {one.name} {_MARKS[one.verdict]}")

    return tell


def _say(url: str, found: list[Result], failed: list[Result]) -> None:
    table = new_table("check", "what must be so", "seconds", "", right=frozenset({"seconds"}))
    for one in found:
        seconds = "" if one.verdict is Verdict.NOT_TRIED else f"{one.seconds:.1f}"
        table.add_row(one.name, one.what, seconds, _MARKS[one.verdict])
    say(table)
    for one in found:
        if one.verdict is not Verdict.PASSED:
            say(f"{_MARKS[one.verdict]} [bold]{one.name}[/]: {escape(one.wrong)}")
            if one.remedy:
                say(escape(one.remedy), indent=2)
    if failed:
        say(f"{count_of(len(failed), 'check')} failed: {escape(url)} does not keep the contract.")
        return
    passed: Any = sum(one.verdict is Verdict.PASSED for one in found)
    say(f"{escape(url)} keeps the contract in all {count_of(passed, 'check')} that were tried.")
