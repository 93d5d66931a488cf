"""How many tokens a text may have, where the model's tokenizer is not here.

An estimate that rather counts too many. Compared with two real tokenizers over real documents
in ``tests/unit/indexer/test_embed_tokens.py``.
"""

from __future__ import annotations

import math
import re
from typing import Final

_PIECES: Final = re.compile(
    r"(?P<word>[A-Z]?[a-z]+)|(?P<space>[ \t\r\n]+)|(?P<sign>[\x00-\x7f])"
    r"|(?P<letters>[\x80-\u07ff]+)|(?P<syllables>[\uac00-\ud7a3]+)|(?P<rest>[^\x00-\u07ff])"
)
_TOKENS: Final = {"word": 1 / 3, "space": 0, "sign": 1, "letters": 1, "syllables": 3, "rest": 2}
"""How many tokens one character of a piece counts."""


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text: rather too many than too few.

    Three small ASCII letters, and a capital in front of them, count one token. Every other
    capital, digit, punctuation mark and accented, Greek, Cyrillic, Hebrew or Arabic letter counts
    one, every Korean syllable three, and every other sign (Chinese, Japanese, Indian and Thai
    letters, emoji) two. Space is free.
    """
    tokens = 0
    for piece in _PIECES.finditer(text):
        length = piece.end() - piece.start()
        tokens += math.ceil(length * _TOKENS[piece.lastgroup or "sign"])
    return tokens
