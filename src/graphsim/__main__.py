"""``python -m graphsim DIR``: serve real folders as OneDrive drives until told to stop."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from graphsim.items import Profile
from graphsim.serving import serve

if TYPE_CHECKING:
    from graphsim.endpoints import Endpoints

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Run the command line."""
    options = _options()
    parent = options.parent or os.getppid()
    if not options.keep:
        _die_with_parent()
        if os.getppid() != parent:
            sys.exit("graphsim: the process that started it has ended already.")
    try:
        asyncio.run(_run(options, parent))
    except OSError as error:
        sys.exit(f"graphsim: {error.strerror or error}")
    except ValueError as error:
        sys.exit(f"graphsim: {error}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="graphsim", description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, metavar="DIR", help="a folder to serve")
    parser.add_argument("--port", type=int, default=0, help="http port; 0 takes a free one")
    parser.add_argument(
        "--profile", default=Profile.BUSINESS, choices=[one.value for one in Profile]
    )
    parser.add_argument("--state", type=Path, help="where ids and certificates are kept")
    parser.add_argument("--ready-file", type=Path, help="written as JSON once all is up")
    parser.add_argument("--page-size", type=int, default=200, help="most items on a page")
    parser.add_argument("--url-lifetime", type=float, default=3600, help="seconds; download URLs")
    parser.add_argument("--memory", action="append", default=[], help="name of a drive in memory")
    parser.add_argument(
        "--site", action="append", default=[], type=_site, metavar="NAME=DIR",
        help="a folder that is the library of a team site",
    )  # fmt: skip
    parser.add_argument(
        "--person", action="append", default=[], help="another person, by user principal name"
    )
    parser.add_argument(
        "--bulk", type=_bulk, metavar="FILES/FOLDERS", help="a drive of so many generated files"
    )
    parser.add_argument("--faults", type=Path, metavar="FILE", help="faults and quirks, as TOML")
    parser.add_argument(
        "--keep", action="store_true", help="go on when the process that started this one ends"
    )
    parser.add_argument(
        "--parent", type=int, help="process id of who starts it; it ends when that one ends"
    )
    return parser.parse_args()


def _site(text: str) -> tuple[str, Path]:
    name, _, folder = text.partition("=")
    if not name or not folder:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=DIR")
    return name, Path(folder)


def _bulk(text: str) -> tuple[int, int]:
    files, _, folders = text.partition("/")
    return int(files), int(folders or "1")


async def _run(options: argparse.Namespace, parent: int) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    state = options.state or _default_state()
    async with serve(
        *options.folders,
        profile=options.profile,
        state=state,
        port=options.port,
        page_size=options.page_size,
        url_lifetime=options.url_lifetime,
        memory=tuple(options.memory),
        sites=dict(options.site),
        people=tuple(options.person),
        faults=options.faults,
        bulk=options.bulk,
    ) as sim:
        _announce(sim.endpoints, options.ready_file)
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), 1.0)
            if not options.keep and os.getppid() != parent:
                break


def _default_state() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "graphsim"


def _announce(endpoints: Endpoints, ready_file: Path | None) -> None:
    """Print the endpoints, and put them into the ready file in one step."""
    text = msgspec.json.format(msgspec.json.encode(endpoints), indent=2).decode() + "\n"
    sys.stdout.write(text)
    sys.stdout.flush()
    if ready_file is None:
        return
    with tempfile.NamedTemporaryFile("w", dir=ready_file.parent, delete=False) as file:
        file.write(text)
    Path(file.name).replace(ready_file)


def _die_with_parent() -> None:
    """Ask Linux to send SIGTERM when the parent ends; elsewhere the loop notices it."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


if __name__ == "__main__":
    main()
