"""Our own backend served over the contract: it passes the kit, and survives its own end."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from drivefeed.backend_service import BackendService
from drivefeed.backends.signing import Credential
from drivefeed.bootstrap import open_parts
from drivefeed.domain.errors import PartDown
from drivefeed.ports import BackendState
from drivefeed.services.conformance.documents import serving
from drivefeed.services.conformance.finding import Verdict
from drivefeed.services.conformance.kit import CHECKS, examine
from drivefeed.setting_sections import EmbeddingSettings
from drivefeed.settings import Settings
from support.backends import TEXT, client_of, submission
from support.commands import run_command
from support.embeddings import KEY, EmbeddingService, embedding_service
from support.sample_backend import SECRET, bench_at
from support.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path


def settings_for(folder: Path, embeddings: EmbeddingService) -> Settings:
    """A data folder whose texts are embedded by a server of the test."""
    return Settings(
        data_dir=folder,
        embedding=EmbeddingSettings(
            provider="openai",
            model="words",
            base_url=f"{embeddings.url}/v1",
            api_key=KEY,  # type: ignore[arg-type] - pydantic makes it a secret
            dimension=16,
            max_tokens=256,
        ),
    )


@pytest.fixture(scope="module")
def embeddings() -> Iterator[EmbeddingService]:
    with embedding_service(dimension=16) as running:
        yield running


@asynccontextmanager
async def service(settings: Settings) -> AsyncIterator[str]:
    """Run the backend over a data folder; yields its URL."""
    async with (
        open_parts(settings) as parts,
        asyncio.TaskGroup() as group,
    ):
        made = BackendService(parts, Credential(SECRET), host="127.0.0.1", port=0)
        ready = asyncio.Event()
        group.create_task(made.run(ready.set))
        await ready.wait()
        yield made.url
        made.close()


async def test_it_passes_every_check_of_the_kit(
    tmp_path: Path, embeddings: EmbeddingService
) -> None:
    settings = settings_for(tmp_path / "data", embeddings)
    async with service(settings) as url, bench_at(url, deadline=120.0) as bench:
        found = await examine(bench)
        for key in ("../../etc/passwd", "a//b", "a\nb"):
            sent = bench.draft(content={"store_key": key}).shape
            answer = await bench.speaker.ask("POST", "/v1/jobs", sent)
            assert (answer.status, answer.code) == (400, "malformed"), answer
    assert [one for one in found if one.verdict is not Verdict.PASSED] == []
    assert len(found) == len(CHECKS)


async def test_a_job_whose_bytes_were_lost_with_the_process_is_submitted_again(
    tmp_path: Path, embeddings: EmbeddingService
) -> None:
    settings = settings_for(tmp_path / "data", embeddings)
    sent = submission(name="plan.txt")
    async with serving("127.0.0.1") as documents:
        held = documents.put("held", TEXT, held=True)

        async def address(key: str) -> str:
            return held.url

        async with service(settings) as url:
            backend = client_of(url, address=address)
            job_id = await backend.submit(sent)
            await held.asked.wait()
            assert (await backend.status(job_id)).state is BackendState.WORKING
            await backend.aclose()
        held.release()
        async with service(settings) as url:
            backend = client_of(url, address=address)
            assert (await backend.status(job_id)).state is BackendState.UNKNOWN
            assert await backend.find(sent.key) is None
            assert await backend.submit(sent) == job_id, "the same key is the same job"

            async def done() -> bool:
                return (await backend.status(job_id)).state is BackendState.DONE

            await until(done, seconds=60)
            assert (await backend.status(job_id)).pages == 1
            await backend.aclose()
            async with open_parts(settings) as parts:
                second = BackendService(parts, Credential(SECRET), host="127.0.0.1", port=0)
                told: list[str] = []
                with pytest.raises(PartDown, match="already uses"):
                    await second.run(lambda: told.append("ready"))
                assert not told


def test_without_a_secret_nothing_is_served(tmp_path: Path) -> None:
    done = run_command("--data", "data", "backend", "serve", cwd=tmp_path, ok=(3,))
    assert "openssl rand -hex 32" in done.stderr
    short = tmp_path / "short"
    short.write_text("short")
    done = run_command(
        "--data", "data", "backend", "serve", "--secret-file", "short", cwd=tmp_path, ok=(3,)
    )
    assert "fewer than 16" in done.stderr
