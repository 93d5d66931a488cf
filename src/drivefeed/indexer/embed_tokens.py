"""How many tokens a text may have, where the model's tokenizer is not here.

An estimate that rather counts too many. Compared with two real tokenizers over real documents
in ``tests/unit/indexer/test_embed_tokens.py``.
"""

from __future__ import annotations

import re
from typing import Final

_PIECES: Final = re.compile(
    r"(?P<word>[A-Za-z]+)|(?P<space>[ \t\r\n]+)|(?P<sign>[\x00-\x7f])|(?P<letters>[\x80-\u07ff]+)"
    r"|(?P<rest>[^\x00-\u07ff]+)"
)
_LETTERS_OF_A_TOKEN: Final = 3
_TOKENS_OF_A_RARE_SIGN: Final = 2


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text: rather too many than too few.

    A run of ASCII letters counts one token for every three letters; every digit, punctuation
    mark and accented, Greek, Cyrillic, Hebrew or Arabic letter counts as one; every other sign
    (Chinese, Japanese, Korean, Indian and Thai letters, emoji) as two. Space is free.
    """
    tokens = 0
    for piece in _PIECES.finditer(text):
        length = piece.end() - piece.start()
        match piece.lastgroup:
            case "word":
                tokens += -(-length // _LETTERS_OF_A_TOKEN)
            case "space":
                pass
            case "rest":
                tokens += _TOKENS_OF_A_RARE_SIGN * length
            case _:
                tokens += length
    return tokens
