"""Column names with braces, as a shell expands them: "C{1..3}" is C1, C2, C3; "x{a,b}" is xa, xb."""

from __future__ import annotations

import re
from itertools import product

from streamtrain import _native

_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)")
MOST_NAMES = _native.MAX_COLUMNS  # of one pattern


def expand(pattern: str) -> list[str]:
    """The names a pattern stands for, in order. ValueError says what is wrong with it."""
    pieces = _BRACES.split(pattern)
    if any("{" in text or "}" in text for text in pieces[::2]):
        raise ValueError(f"expected braces in pairs, not nested, got {pattern!r}")
    choices = [[piece] if i % 2 == 0 else _choices(piece, pattern) for i, piece in enumerate(pieces)]
    count = 1
    for choice in choices:
        count *= len(choice)
    if count > MOST_NAMES:
        raise ValueError(f"expected at most {MOST_NAMES:,} names, got {count:,} from {pattern!r}")
    return ["".join(parts) for parts in product(*choices)]


def expand_both(pattern: str, path: str | None) -> list[tuple[str, str | None]]:
    """The names a pattern stands for, each with its path: the path's braces go in step with the name's."""
    names = expand(pattern)
    if path is None:
        return [(name, None) for name in names]
    try:
        paths = expand(path)
    except ValueError as error:
        raise ValueError(f"path: {error}") from None
    if len(paths) != len(names):
        raise ValueError(f"path: expected braces for as many as the name's, {len(names):,}, got {len(paths):,}")
    return list(zip(names, paths, strict=True))


def _choices(inside: str, pattern: str) -> list[str]:
    span = _RANGE.fullmatch(inside)
    if span is None:
        if "," not in inside:
            raise ValueError(f"expected {{1..3}} or {{a,b}}, got {{{inside}}} in {pattern!r}")
        return inside.split(",")
    first, last = int(span[1]), int(span[2])
    if abs(last - first) >= MOST_NAMES:
        raise ValueError(f"expected at most {MOST_NAMES:,} names, got {abs(last - first) + 1:,} from {pattern!r}")
    padded = any(len(text.lstrip("-")) > 1 and text.lstrip("-").startswith("0") for text in span.groups())
    width = max(len(span[1]), len(span[2])) if padded else 0  # {01..10} counts 01, 02
    step = 1 if last >= first else -1
    return [f"{number:0{width}d}" for number in range(first, last + step, step)]
