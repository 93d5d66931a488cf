"""``backend``: serve our own ingestion backend, and check one of others against the contract."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from drivefeed.cli.once import Commands

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs, and nothing else.")]
SecretFile = Annotated[
    Path | None,
    typer.Option(
        "--secret-file",
        readable=False,
        help="A file with the shared secret; or DRIVEFEED_BACKEND_SECRET.",
    ),
]
Auth = Annotated[str, typer.Option(help="hmac (each request is signed) or bearer.")]

app = Commands(
    help="Ingestion backends behind the published contract (docs/backend-contract.md).",
    no_args_is_help=True,
)


@app.command("serve")
def serve(
    host: Annotated[str, typer.Option(help="The address to bind.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 for any that is free.")] = 8770,
    secret_file: SecretFile = None,
    auth: Auth = "hmac",
    *,
    as_json: Json = False,
) -> None:
    """Serve our own ingestion backend to drivefeeds elsewhere, until Ctrl-C.

    It works on the data folder of --data, which no other drivefeed may use.
    """
    from drivefeed.cli.backend_serve import serve_backend

    serve_backend(host, port, secret_file, auth, as_json=as_json)


@app.command("check")
def check(
    url: Annotated[str, typer.Argument(help="Where the backend is: what comes before /v1.")],
    *,
    secret_file: SecretFile = None,
    auth: Auth = "hmac",
    only: Annotated[
        list[str] | None, typer.Option("--only", help="The name of a check; may be repeated.")
    ] = None,
    listen: Annotated[
        str, typer.Option(help="The address where the kit serves its documents to the backend.")
    ] = "127.0.0.1",
    documents: Annotated[
        str, typer.Option(help="How the backend reaches them, if by another address (http://…).")
    ] = "",
    store_key: Annotated[
        list[str] | None,
        typer.Option(
            "--store-key", help="The key of a small text, for a backend that reads the store."
        ),
    ] = None,
    deadline: Annotated[
        float, typer.Option(min=1, max=3600, help="Seconds that a tiny document may take.")
    ] = 60.0,
    as_json: Json = False,
) -> None:
    """Check a backend against the contract, and say of each fault what to do.

    It submits some forty tiny documents of an organization 'drivefeed-check' and removes them at
    the end. It uses no data folder.
    """
    from drivefeed.cli.backend_check import Wishes, check_backend

    check_backend(
        url,
        Wishes(
            secret_file=secret_file,
            auth=auth,
            only=tuple(only or ()),
            listen=listen,
            documents=documents,
            store_keys=tuple(store_key or ()),
            deadline=deadline,
        ),
        as_json=as_json,
    )
