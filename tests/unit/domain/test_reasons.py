from __future__ import annotations

import re
from pathlib import Path

import pytest

import drivefeed
from drivefeed.domain.explanations import EXPLANATIONS, Kind, explain
from drivefeed.domain.lifecycle import WITHDRAWAL_REASONS
from drivefeed.domain.reasons import Reason


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_is_explained_in_sentences_with_a_remedy(reason: Reason) -> None:
    words = explain(reason)
    assert words.meaning.endswith(".")
    assert words.remedy.endswith(".")
    assert words.meaning[0].isupper()


def test_nothing_is_explained_that_is_no_reason() -> None:
    assert set(EXPLANATIONS) == set(Reason)


def test_codes_fit_their_columns_and_programs() -> None:
    assert all(re.fullmatch(r"[a-z][a-z_]{2,39}", reason) for reason in Reason)


def test_withdrawals_end_for_reasons_of_their_kind() -> None:
    assert {reason for reason in Reason if explain(reason).kind is Kind.WITHDRAWN} == set(
        WITHDRAWAL_REASONS
    )


def test_the_code_names_only_reasons_of_the_list() -> None:
    root = Path(drivefeed.__file__).parent
    named = {
        name
        for path in root.rglob("*.py")
        for name in re.findall(r"\bReason\.([A-Z_]+)\b", path.read_text())
    }
    assert named <= set(Reason.__members__)
