"""Measures extraction: pages and characters a second by type, and memory.

Run `python bench/extract.py [FOLDER]` from the root of the repository; the folder defaults to the
shared corpus. Prints one line for the machine, one for each type, and one for generated PDFs.
"""

from __future__ import annotations

import asyncio
import os
import platform
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from drivefeed.indexer.chunk import chunk_pages  # noqa: E402 - after the path is set
from drivefeed.indexer.embed import LocalEmbedder, load_tokenizer  # noqa: E402
from drivefeed.indexer.extract import ExtractionPool  # noqa: E402
from drivefeed.indexer.model import Rejected  # noqa: E402
from integration.indexer.office import write_pdf  # noqa: E402

ROUNDS = 3


@dataclass(slots=True)
class Sum:
    """What the files of one type took."""

    files: int = 0
    rejected: int = 0
    pages: int = 0
    characters: int = 0
    seconds: float = 0.0
    slowest: float = 0.0


async def read(pool: ExtractionPool, path: Path, total: Sum) -> None:
    began = time.perf_counter()
    try:
        extraction = await pool.extract(path, name=path.name)
        total.pages += extraction.page_count
        total.characters += sum(len(page.text) for page in extraction.pages)
    except Rejected:
        total.rejected += 1
    taken = time.perf_counter() - began
    total.files += 1
    total.seconds += taken
    total.slowest = max(total.slowest, taken)


def memory(pool: ExtractionPool) -> str:
    sizes = [psutil.Process(pid).memory_info().rss >> 20 for pid in pool.pids]
    return f"children {sizes} MB, this process {psutil.Process().memory_info().rss >> 20} MB"


def show(kind: str, total: Sum) -> None:
    print(
        f"{kind:6} {total.files:4} files ({total.rejected} rejected)"
        f" {total.files / total.seconds:8.1f} files/s {total.pages / total.seconds:8.1f} pages/s"
        f" {total.characters / total.seconds / 1e6:7.2f} MB/s  slowest {total.slowest:.2f} s"
    )


def documents(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.*") if path.suffix != ".tsv")


async def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT.parent / "shared" / "corpus"
    print(
        f"machine: {platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f},"
        f" {platform.system()} {platform.release()}, Python {platform.python_version()}"
    )
    by_type: dict[str, Sum] = defaultdict(Sum)
    async with ExtractionPool(size=1) as pool:
        cold = Sum()
        with tempfile.TemporaryDirectory() as temporary:
            first = Path(temporary, "first.pdf")
            write_pdf(first, ["the first file starts the process"])
            await read(pool, first, cold)
            print(f"cold start of a child: {cold.seconds:.2f} s; {memory(pool)}")
            for path in documents(folder) * ROUNDS:
                await read(pool, path, by_type[path.suffix[1:]])
            for kind, total in sorted(by_type.items()):
                show(kind, total)
            long = write_pdf(Path(temporary, "long.pdf"), ["a sentence on each page"] * 3_000)
            generated = Sum()
            await read(pool, long, generated)
            show("3000 p", generated)
            print(memory(pool))
    await measure_chunks()


async def measure_chunks() -> None:
    from drivefeed.indexer.model import Page

    text = " ".join(f"Sentence {n} says something about contracts." for n in range(5_000))
    began = time.perf_counter()
    chunks = chunk_pages([Page(1, text)], tokenizer=load_tokenizer()).chunks
    taken = time.perf_counter() - began
    print(f"chunking: {len(text) / taken / 1e6:.2f} MB/s, {len(chunks)} chunks")
    async with LocalEmbedder() as embedder:
        began = time.perf_counter()
        await embedder.embed_query("load")
        loaded = time.perf_counter() - began
        began, used = time.perf_counter(), time.process_time()
        await embedder.embed_documents([chunk.text for chunk in chunks[:100]])
        taken, used = time.perf_counter() - began, time.process_time() - used
        count = min(100, len(chunks))
        print(
            f"embedding: load {loaded:.2f} s, {count / taken:.1f} chunks/s,"
            f" {used / count * 1000:.0f} ms of CPU each,"
            f" this process {psutil.Process().memory_info().rss >> 20} MB"
        )


if __name__ == "__main__":
    asyncio.run(main())
