"""What an account has wrong: each cause is told by its own sentence and remedy."""

from __future__ import annotations

import pytest

from drivefeed.catalog.account_states import AccountState, state_for
from drivefeed.domain.access import NEEDS_OPERATOR
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.explanations import explain
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph.account import ClientSecret, GraphAccount
from drivefeed.sources.graph.delegated_errors import of_sign_in
from drivefeed.sources.graph.refused import EntraRefusal, sign_in_error

ACCOUNT = GraphAccount("1", "office", "contoso.example", "app", ClientSecret("s"))


@pytest.mark.parametrize(
    ("error", "text", "reason"),
    [
        ("invalid_client", "no number", Reason.CREDENTIAL_REFUSED),
        ("invalid_client", "AADSTS700021: assertion", Reason.SIGN_IN_MISDIRECTED),
        ("invalid_client", "AADSTS7000215: secret", Reason.SECRET_WRONG),
        ("invalid_request", "AADSTS900144: body", Reason.SIGN_IN_REFUSED),
        ("invalid_resource", "AADSTS500011: resource", Reason.SIGN_IN_REFUSED),
    ],
)
def test_a_refusal_of_the_app_has_its_own_reason(error: str, text: str, reason: Reason) -> None:
    ours = sign_in_error(EntraRefusal(error, text, 400), ACCOUNT)
    assert isinstance(ours, NeedsAttention)
    assert ours.reason is reason


def test_an_app_that_admits_no_people_is_told_what_to_set() -> None:
    ours = of_sign_in({"error": "unauthorized_client"}, ACCOUNT)
    assert ours.reason is Reason.PERSON_NOT_ADMITTED
    assert "allow public client flows" in explain(ours.reason).remedy


def test_a_missing_token_file_is_a_matter_of_the_platform() -> None:
    words = explain(Reason.TOKEN_FILE_MISSING)
    assert "token file" in words.meaning
    assert "platform" in words.remedy
    assert "tenant" not in words.remedy


def test_what_is_put_right_here_is_one_state_with_many_causes() -> None:
    assert {state_for(reason) for reason in NEEDS_OPERATOR} == {AccountState.MISCONFIGURED}
    assert "tenant" not in explain(Reason.MISCONFIGURED).remedy
