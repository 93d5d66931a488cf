"""What is typed wrongly may be a secret: the error names the option, and never a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.commands import run_command, said_in_frame

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "Zq8Q~vX2canary.Rt-71"
ADD = "account add office --client-id 00000000-1111-2222-3333-444444444444 --tenant contoso.example"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (f"{ADD} --secret-valeu {SECRET}", "There is no option --secret-valeu."),
        (f"{ADD} --secret-fiel={SECRET}", "no option --secret-fiel. Did you mean --secret-file?"),
        (f"{ADD} --secret-stdin{SECRET}", "There is no such option"),
        (f"{ADD} --{SECRET}", "There is no such option"),
        (f"{ADD} -{SECRET}", "There is no such option"),
        (f"{ADD} --secret-stdin {SECRET}", "There is more than this command takes"),
        (f"{ADD} --expires {SECRET}", "a day such as 2027-01-31"),
        (f"{ADD} --no-test={SECRET}", "--no-test"),
        (f"account {SECRET}", "There is no such command"),
        (f"account --secret-file {SECRET}", "There is no option --secret-file."),
        (f"{SECRET} status", "There is no such command"),
        (f"--dta {SECRET} status", "There is no option --dta. Did you mean --data?"),
        (f"status --data={SECRET}", "--data stands before the command: drivefeed --data … status"),
        (
            f"account list --config {SECRET}",
            "--config stands before the command: drivefeed --config … account list",
        ),
        (f"search words --limit {SECRET}", "--limit"),
        (f"backend check https://b.example --auth {SECRET}", "--auth"),
    ],
)
def test_a_value_in_the_wrong_place_is_not_repeated(tmp_path: Path, typed: str, said: str) -> None:
    done = run_command(*typed.split(), cwd=tmp_path, ok=[2])
    words = said_in_frame(done.stderr)
    assert said in words
    for piece in (SECRET, SECRET[:8], SECRET[-8:]):
        assert piece not in done.stdout + words.replace(" ", "")


def test_a_secret_in_the_place_of_its_file_is_not_repeated(tmp_path: Path) -> None:
    run_command("--data", "data", "init", cwd=tmp_path)
    typed = f"--data data {ADD} --secret-file {SECRET}"
    said = run_command(*typed.split(), cwd=tmp_path, ok=[3]).stderr
    assert "The secret file is not there." in said
    assert SECRET[:8] not in said


def test_a_command_that_is_nearly_right_is_offered(tmp_path: Path) -> None:
    said = run_command("accuont", "list", cwd=tmp_path, ok=[2]).stderr
    assert "Did you mean account?" in said_in_frame(said)
