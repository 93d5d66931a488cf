"""``backend serve``: our own backend as a process of its own."""

from __future__ import annotations

import asyncio
import signal
from functools import partial
from typing import TYPE_CHECKING

from drivefeed.cli.backend_secret import VARIABLE, credential_of
from drivefeed.cli.context import run, settings_for_commands
from drivefeed.cli.output import print_json, say
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.telemetry import configure_logs
from drivefeed.web.listening import is_loopback

if TYPE_CHECKING:
    from pathlib import Path

    from drivefeed.backends.signing import Credential
    from drivefeed.settings import Settings


def serve_backend(
    host: str, port: int, secret_file: Path | None, auth: str, *, as_json: bool
) -> None:
    """Serve until SIGTERM or Ctrl-C.

    Raises:
        NeedsAttention: there is no secret, or the address cannot be bound.
    """
    credential = credential_of(secret_file, auth)
    if credential is None:
        raise NeedsAttention(
            "The backend needs a secret that it shares with those who submit: make one with "
            f"'openssl rand -hex 32' and name its file with --secret-file, or set {VARIABLE}.",
            reason=Reason.MISCONFIGURED,
        )
    settings = settings_for_commands()
    configure_logs(json=as_json or settings.log_json, level=settings.log_level)
    run(_serve(settings, credential, host, port, as_json=as_json))


async def _serve(
    settings: Settings, credential: Credential, host: str, port: int, *, as_json: bool
) -> None:
    from drivefeed.backend_service import BackendService
    from drivefeed.bootstrap import open_parts

    async with open_parts(settings) as parts:
        service = BackendService(parts, credential, host=host, port=port)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, service.close)
        await service.run(partial(_tell, service.url, host, as_json=as_json))


def _tell(url: str, host: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"url": url})
        return
    say(f"The backend is at {url} until Ctrl-C.")
    say("'drivefeed backend check' tells whether it keeps the contract.")
    if not is_loopback(host):
        say("Others can reach it, and nothing is encrypted: put a proxy with https before.")
