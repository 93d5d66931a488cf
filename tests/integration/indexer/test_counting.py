"""Pages that are counted without being read are those that reading counts."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

import pypdfium2
import pytest

from drivefeed.indexer.model import Limits
from drivefeed.indexer.reading import StoredFiles
from drivefeed.stores.directory import DirectoryStore
from integration.indexer.office import paragraph, write_docx, write_pdf
from support.clock import no_checkpoint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from drivefeed.indexer.extract import ExtractionPool

pytestmark = pytest.mark.asyncio(loop_scope="module")


def with_blank_pages(path: Path, pages: int) -> bytes:
    document = pypdfium2.PdfDocument(path)
    while len(document) < pages:
        document.new_page(200, 200)
    whole = BytesIO()
    document.save(whole)
    document.close()
    return whole.getvalue()


async def test_a_pdf_is_counted_as_it_is_read_and_other_files_are_not(
    shared_pool: ExtractionPool, tmp_path: Path
) -> None:
    written = tmp_path / "written.pdf"
    write_pdf(written, ["one page of words"])
    written.write_bytes(with_blank_pages(written, 70))
    read = await shared_pool.extract(written, name=written.name)
    docx = tmp_path / "written.docx"
    write_docx(docx, paragraph("words"))
    store = DirectoryStore(tmp_path / "objects")
    files = StoredFiles(store, shared_pool, Limits(), tmp_path, checkpoint=no_checkpoint)

    async def count(name: str, content: bytes) -> int | None:
        async def pieces() -> AsyncIterator[bytes]:
            yield content

        key = f"org/{name}"
        await store.put(key, pieces(), content_type="application/pdf", size=None)
        return await files.count_pages(key, name)

    assert read.page_count == 70
    assert await count("good.pdf", written.read_bytes()) == 70
    assert await count("cut.pdf", written.read_bytes()[:300]) is None
    assert await count("really-a-docx.pdf", docx.read_bytes()) is None
    assert await count("good.docx", docx.read_bytes()) is None
    assert await files.count_pages("org/missing.pdf", "missing.pdf") is None
    # The child that only counted reads the next file as ever.
    assert await shared_pool.extract(written, name=written.name) == read
