"""The conformance kit: right backends pass, and each wrong one is caught by the check of its fault.

Only by that one: a kit that reports five faults for one sends people to look in five places.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from drivefeed.services.conformance.finding import Verdict
from drivefeed.services.conformance.kit import CHECKS, examine
from support.commands import run_command
from support.sample_backend import SECRET, bench_at, sample, served
from support.valkey import free_port
from support.wrong_backends import WRONG

if TYPE_CHECKING:
    from pathlib import Path

    from support.wrong_backends import Wrong


@pytest.mark.parametrize("way", ["hmac", "bearer"])
async def test_the_sample_backend_passes(way: str) -> None:
    backend = sample.Backend(secret=SECRET, way=way)
    with served(backend) as url:
        async with bench_at(url, way=way) as bench:
            found = await examine(bench)
    assert [one for one in found if one.verdict is Verdict.FAILED] == []
    tried = {one.name for one in found if one.verdict is Verdict.PASSED}
    signed = {one.name for one in CHECKS if one.signed}
    assert tried == {one.name for one in CHECKS} - (signed if way == "bearer" else set())
    # Nothing that the kit submitted stays in the backend's search.
    assert backend.rows("SELECT count(*) AS n FROM jobs")[0]["n"] >= 20
    assert backend.rows("SELECT count(*) AS n FROM chunks")[0]["n"] == 0
    assert backend.rows("SELECT count(*) AS n FROM jobs WHERE live = 1")[0]["n"] == 0


def test_a_backend_that_reads_the_store_is_given_keys(tmp_path: Path) -> None:
    store = tmp_path / "objects"
    (store / "org").mkdir(parents=True)
    for name in ("one", "two"):
        (store / "org" / name).write_text(f"The text of {name}.")
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    keys = ("--store-key", "org/one", "--store-key", "org/two")
    words = ("backend", "check", "--secret-file", str(secret), *keys, "--json")
    with served(sample.Backend(secret=SECRET, store=store)) as url:
        found = json.loads(run_command(*words, url, cwd=tmp_path).stdout)["checks"]
    not_tried = {one["name"] for one in found if one["verdict"] == "not tried"}
    assert not_tried == {one.name for one in CHECKS if one.fetched}


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(one, id=one.__name__, marks=[pytest.mark.soak] if one.is_like_others else [])
        for one in WRONG
    ],
)
async def test_a_wrong_backend_is_caught_by_the_check_of_its_fault_alone(
    kind: type[Wrong],
) -> None:
    with served(kind()) as url:
        async with bench_at(url) as bench:
            found = await examine(bench)
    failed = [one for one in found if one.verdict is Verdict.FAILED]
    assert [one.name for one in failed] == [kind.caught_by], failed
    assert failed[0].wrong.endswith(".")
    assert failed[0].remedy.endswith(".")


def test_there_are_enough_faults_and_every_check_has_one() -> None:
    assert sum(not one.is_like_others for one in WRONG) >= 12
    without = {one.name for one in CHECKS} - {kind.caught_by for kind in WRONG}
    # Nobody has yet seen a backend with one of these faults and no other.
    assert without == {"too-large", "cut-reply", "cancel-before"}


def test_the_command_tells_faults_and_ends_with_one(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    words = ("backend", "check", "--secret-file", str(secret), "--only", "final")
    with served(sample.Backend(secret=SECRET)) as url:
        done = run_command(*words, url, cwd=tmp_path)
        assert "keeps the contract" in done.stdout
    wrong = next(one for one in WRONG if one.caught_by == "final")
    with served(wrong()) as url:
        done = run_command(*words, url, "--json", cwd=tmp_path, ok=(1,))
        found = json.loads(done.stdout)
        assert found["passed"] is False
        assert [one["verdict"] for one in found["checks"]] == ["failed"]
        told = run_command(*words, url, cwd=tmp_path, ok=(1,)).stdout
        assert "Let nothing leave 'done'" in told
        assert SECRET not in told


def test_a_server_that_is_no_backend_is_one_fault(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("another-secret-of-the-tests")
    with served(sample.Backend(secret=SECRET)) as url:
        done = run_command(
            "backend", "check", url, "--secret-file", str(secret), "--json", cwd=tmp_path, ok=(1,)
        )
    checks = json.loads(done.stdout)["checks"]
    assert [one["name"] for one in checks if one["verdict"] == "failed"] == ["health"]
    assert {one["verdict"] for one in checks} == {"failed", "not tried"}


def test_documents_that_the_backend_cannot_reach_are_the_fault_and_not_its_jobs(
    tmp_path: Path,
) -> None:
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    # The kit listens at another address of this machine.
    elsewhere = f"http://127.0.0.9:{free_port()}"
    words = ("--secret-file", str(secret), "--documents", elsewhere, "--only", "usage")
    with served(sample.Backend(secret=SECRET)) as url:
        told = run_command("backend", "check", url, *words, cwd=tmp_path, ok=(1,)).stdout
    assert f"The document at {elsewhere}/" in told
    assert "--documents" in told
    assert "Answer 200" not in told
