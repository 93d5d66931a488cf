"""What came of adding or changing an account, in words and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from drivefeed.cli.account_show import certificate_words
from drivefeed.cli.context import EXIT_NOT_CLEAN
from drivefeed.cli.output import escape, print_json, say

if TYPE_CHECKING:
    from drivefeed.catalog.accounts import Account
    from drivefeed.cli.account_show import Tried
    from drivefeed.cli.account_way import Brought


def tell_account(
    words: str, account: Account, brought: Brought, tried: Tried | None, *, as_json: bool
) -> None:
    """Tell it; exit code 1 if the account was tried and cannot sign in."""
    made = brought.certificate
    if as_json:
        print_json(
            {
                "account_id": account.account_id,
                "name": account.name,
                "org": account.org,
                "sign_in": account.sign_in,
                "user_name": account.user_name,
                "expires_at": account.expires_at,
                "has_pending": account.has_pending,
                "can_sign_in": tried.can if tried else None,
                "words": tried.words if tried else None,
                "certificate": made.public_pem if made else None,
                "thumbprint": made.sha1 if made else None,
            }
        )
    else:
        say(escape(words))
        if account.user_name:
            say(f"It reads what {escape(account.user_name)} may read.")
        if made is not None:
            say(certificate_words(made))
        if tried is None and made is not None:
            say(
                "Upload the certificate under 'Certificates & secrets' of the app registration, "
                f"then run 'drivefeed account test {escape(account.name)}'."
            )
            if account.has_pending:
                say(
                    "Until a sign-in with it succeeds, the account goes on with what it had; so "
                    "leave that at the app registration until then."
                )
        if tried is not None:
            say(escape(tried.words))
    if tried is not None and not tried.can:
        raise typer.Exit(EXIT_NOT_CLEAN)
