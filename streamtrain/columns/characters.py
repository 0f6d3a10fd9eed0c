"""Letters as Unicode has them: small ones, and those that words are made of. Native code is told these tables.

They are those of the Python that runs: code points assigned since its version of Unicode are no letters yet.
"""

from __future__ import annotations

import unicodedata
from functools import cache

_END_OF_CAPITALS = 0x1E944
_END_OF_WORDS = 0x40000  # behind it are a few variation selectors, and nothing else that could be
_WORD = "LMN"  # general categories: letters, their marks, numbers


@cache
def capitals() -> tuple[int, ...]:
    """Capitals beyond ASCII, ascending, each followed by its small letter (Unicode's simple mapping)."""
    found: list[int] = []
    for code in range(0x80, _END_OF_CAPITALS):
        small = chr(code).lower()
        if len(small) == 1 and small != chr(code):
            found += (code, ord(small))
    return tuple(found)


def in_word(letter: str) -> bool:
    """Returns True if a character can be part of a word."""
    return ord(letter) < _END_OF_WORDS and unicodedata.category(letter)[0] in _WORD


@cache
def word_ranges() -> tuple[int, ...]:
    """The code points of words: where each range begins and ends."""
    found: list[int] = []
    within = False
    for code in range(_END_OF_WORDS + 1):
        if in_word(chr(code)) != within:
            found.append(code)
            within = not within
    return tuple(found)
