"""The entry of ``drivefeed``: options of all commands, and errors told as sentences."""

from __future__ import annotations

import gc
import io
import sys
from contextlib import contextmanager
from pathlib import Path  # noqa: TC003 - Typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drivefeed.cli import backend, commands, connection, connections, key
from drivefeed.cli.account import account_app
from drivefeed.cli.context import DATA_VARIABLE, EXIT_TROUBLE, options
from drivefeed.cli.misspelt import forget_values
from drivefeed.cli.notices import notices_app
from drivefeed.cli.once import Commands, OnceGroup
from drivefeed.cli.org import org_app
from drivefeed.cli.secrets import secrets_app
from drivefeed.cli.usage import usage_app

if TYPE_CHECKING:
    from collections.abc import Iterator

EXIT_CODES = (
    "Exit codes: 0 all is well · 1 the answer is no (drift, nothing found, something red) · "
    "2 the command was not understood · 3 something stands in the way, and a sentence on standard "
    "error says what."
)


@contextmanager
def _without_values() -> Iterator[None]:
    try:
        yield
    except typer.TyperException as error:
        forget_values(error)
        raise


class _Commands(OnceGroup):
    """All commands; remembers which one was typed, and repeats nothing that was misspelt."""

    def make_context(self, *args: Any, **more: Any) -> Any:
        """Read the options before the command's name; see Click's ``Command``."""
        with _without_values():
            return super().make_context(*args, **more)

    def invoke(self, ctx: Any) -> Any:
        """Read the command's own options and run it; see Click's ``Group``."""
        with _without_values():
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; see Click's ``Group``, of which Typer has a copy of its own."""
        options.words = tuple(args)
        return super().resolve_command(ctx, args)


_EVERYWHERE = frozenset({"--data", "--config"})
_OBJECTS_BETWEEN_COLLECTIONS = 20_000
"""What is loaded stays: looking through it every 700 objects is a tenth of the time to load it."""

app = Commands(
    name="drivefeed",
    cls=_Commands,
    help="Keeps OneDrive and SharePoint folders flowing into search: nothing lost, nothing twice.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["--help", "-h"]},
)


@app.callback()
def everywhere(
    data_dir: Annotated[
        Path | None,
        typer.Option(
            "--data",
            envvar=DATA_VARIABLE,
            show_envvar=True,
            readable=False,  # what cannot be read is told in a sentence
            help="The data folder; without one, that of the last demo that ran here.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            readable=False,
            help="A TOML file with settings; or name it in DRIVEFEED_CONFIG.",
        ),
    ] = None,
) -> None:
    """Options of all commands; they come before the command's name."""
    options.data_dir = data_dir
    options.config = config
    options.told_folder = False


for panel, group in commands.PANELS.items():
    for command in group:
        name = command.__name__.replace("_", "-")
        app.command(name, rich_help_panel=panel, epilog=EXIT_CODES)(command)
app.add_typer(notices_app, name="notices", rich_help_panel="Look", epilog=EXIT_CODES)
app.add_typer(usage_app, name="usage", rich_help_panel="Look", epilog=EXIT_CODES)
for family in (org_app, account_app, secrets_app):
    app.add_typer(family, rich_help_panel="Set up")
for family in (connection.app, connections.app):
    app.add_typer(family, rich_help_panel="Choose")
app.add_typer(key.app, name="key", rich_help_panel="Access")
app.add_typer(backend.app, name="backend", rich_help_panel="Connect")


def escape_what_cannot_be_written() -> None:
    """A terminal of another encoding shows an escape for what it lacks; nothing breaks off."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def main() -> None:
    """Run the command line; what stands in the way is one sentence and exit code 3."""
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    escape_what_cannot_be_written()
    try:
        app.narrowed(sys.argv[1:], valued=_EVERYWHERE)(prog_name="drivefeed")
    except Exception as error:
        from drivefeed.cli.trouble import complain, give_up_output, sentence_of, tell_defect

        words = sentence_of(error)
        if words is None:
            sys.excepthook = tell_defect
            raise
        complain(f"drivefeed: {words}")
        give_up_output()
        sys.exit(EXIT_TROUBLE)
