"""Child processes of drivefeed: forks of the process that starts them, not new interpreters.

A daemon starts a process for the index and some that read files, a demo starts graphsim, and most
daemons of a test last hardly longer than an interpreter takes to load what these need. A fork has
it loaded. All else is as it would be: their pipes, their session, their environment, and that they
end with their parent.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import gc
import importlib
import os
import resource
import signal
import sys
import traceback
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_PR_SET_PDEATHSIG = 1
INDEX = "drivefeed.indexer.vectors.edge_child"
READER = "drivefeed.indexer.extract.child"
GRAPHSIM = "graphsim.__main__"
LOADED = (
    *(INDEX, READER, GRAPHSIM, "qdrant_edge", "drivefeed.indexer.extract.text"),
    *("drivefeed.indexer.extract.docx", "drivefeed.indexer.extract.detect"),
)
"""What they load, and is loaded before the first fork; it starts no threads."""


def fork_children(*modules: str) -> None:
    """Have children of this process that run these modules be forks of it, from now on.

    A reader may use so much memory and no more, and that counts what its parent had loaded: only
    where nothing but plain text is read can it be a fork.
    """
    start: Any = asyncio.create_subprocess_exec

    async def start_or_fork(*command: str, **options: Any) -> asyncio.subprocess.Process:
        module, run = _main_of(command)
        if run is not None and module in modules:
            # It is called where the new program would be loaded, which it does not come back to.
            options["preexec_fn"] = partial(_become, run, options.get("env"))
        process: asyncio.subprocess.Process = await start(*command, **options)
        return process

    asyncio.create_subprocess_exec = start_or_fork  # type: ignore[assignment]


def _main_of(command: Sequence[str]) -> tuple[str, Callable[[], object] | None]:
    """Return what a command line would run, by its module; None for other programs."""
    if READER in command:
        return READER, partial(_run, READER, command[-1:])
    if command[1:3] == ("-m", "graphsim"):
        return GRAPHSIM, partial(_run, GRAPHSIM, command[3:])
    if any(f"from {INDEX} import main" in words for words in command):
        # The words behind the program: where the package lies, then what it is given.
        program = next(n for n, words in enumerate(command) if INDEX in words)
        return INDEX, partial(_run, INDEX, (), *command[program + 2 :])
    return "", None


def _run(module: str, words: Sequence[str], *given: str) -> None:
    sys.argv = [module, *words]
    sys.exit(importlib.import_module(module).main(*given))


def _become(run: Callable[[], object], environment: Mapping[str, str] | None) -> None:
    """Be a process of its own: with its three pipes alone, and signals as a new one has them."""
    code = 70
    try:
        # Among them is the pipe by which the parent learns that the program was loaded.
        os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        if environment is not None:
            os.environ.clear()
            os.environ.update(environment)
        gc.freeze()
        code = to_its_end(run)
    except BaseException:  # noqa: BLE001 - whatever it was, it ends this child alone
        traceback.print_exc()
    finally:
        os._exit(code)


def end_with_parent() -> None:
    """Have this process killed when the one that forked it ends; tests may be killed as well."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def to_its_end(run: Callable[[], object]) -> int:
    """Run a program as an interpreter does, with all that it does at its end; return its code."""
    code = 0
    try:
        run()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        if code == 1 and ended.code != 1:
            sys.stderr.write(f"{ended.code}\n")
    except BaseException:  # noqa: BLE001 - whatever it was, an interpreter would end with it
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        # What is on the other side may have ended.
        with suppress(OSError):
            stream.flush()
    return code
