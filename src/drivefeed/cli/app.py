"""The commands of ``drivefeed``, gathered."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 - Typer reads the annotations
from typing import Annotated

import typer

from drivefeed import __version__
from drivefeed.cli import control, demo, doctor, look, serve, verify
from drivefeed.cli.context import DATA_VARIABLE, EXIT_TROUBLE, options
from drivefeed.domain.errors import DrivefeedError
from drivefeed.settings import CONFIG_VARIABLE

app = typer.Typer(
    name="drivefeed",
    help="Keeps OneDrive and SharePoint folders flowing into search: nothing lost, nothing twice.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


@app.callback()
def everywhere(
    data_dir: Annotated[
        Path | None,
        typer.Option(
            "--data", envvar=DATA_VARIABLE, help="The data folder of the daemon.", show_envvar=True
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", envvar=CONFIG_VARIABLE, help="A TOML file with settings.", show_envvar=True
        ),
    ] = None,
) -> None:
    """Options of all commands; they come before the command's name."""
    options.data_dir = data_dir
    options.config = config


@app.command()
def version(*, as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
    """Print the version."""
    if as_json:
        typer.echo(f'{{"version": "{__version__}"}}')
    else:
        typer.echo(f"drivefeed {__version__}")


for command in (
    demo.demo,
    serve.up,
    serve.queues,
    serve.board_env,
    look.status,
    look.imports,
    look.why,
    look.search,
    control.retry,
    control.pause,
    control.resume,
    control.removals,
    verify.verify,
    doctor.doctor,
):
    app.command()(command)


def main() -> None:
    """Run the command line; errors on purpose are one sentence and exit code 3."""
    try:
        app()
    except DrivefeedError as error:
        sys.stderr.write(f"drivefeed: {error}\n")
        sys.exit(EXIT_TROUBLE)
