"""Patterns against Python's `re`, and that time is linear where that one's is not."""

from __future__ import annotations

import json
import random
import re
import time
from typing import Any

import pytest
from long_tables import in_full_all, some
from looped import over
from slots import RowSlot

from streamtrain.columns.patterns import MOST_STEPS, compiled
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake


def schema_of(pattern: str, group: int = 0) -> Schema:
    table = {"extract": "x", "pattern": pattern, "group": group, "buckets": 1 << 20, "missing": ""}
    columns: dict[str, Any] = {"x": {"role": "input", "kind": "category"}, "y": {"role": "label"}}
    return Schema.from_columns(columns, "mean_squared_error", {"t": table})


def generated(chance: random.Random, depth: int = 3) -> str:
    """A pattern of few letters, so that it often matches."""
    if depth == 0:
        return chance.choice(["a", "b", "c", ".", "[ab]", "[^a]", r"\d", r"\w", r"\-", "\u00e9"])
    inner = [generated(chance, depth - 1) for _ in range(chance.randint(1, 3))]
    form = chance.randrange(5)
    if form == 0:
        return "".join(inner)
    if form == 1:
        return f"({'|'.join(inner)})"
    if form == 2:
        return f"(?:{inner[0]}){chance.choice(['*', '+', '?', '{2}', '{1,}', '{0,2}'])}{chance.choice(['', '?'])}"
    return chance.choice(["^", ""]) + "".join(inner) + chance.choice(["$", "", ""])


@in_full_all()
def test_native_and_slow_agree_on_generated_patterns(same: Any, take: Any) -> None:
    chance, matched = random.Random(4), 0
    count = 100 if take is some else 600
    for _ in range(count):
        pattern = generated(chance)
        try:
            groups = compiled(pattern, 0).groups
        except ValueError:
            continue
        schema = schema_of(pattern, chance.randint(0, groups))
        rows = [["".join(chance.choices("aabbc1-\u00e9\n", k=chance.randrange(9))), 1] for _ in range(20)]
        matched += sum(re.search(compiled(pattern, 0).source, row[0], re.DOTALL) is not None for row in rows)
        assert same(schema, "json", json.dumps(rows).encode(), 64).trained == 20
    assert matched > 3 * count


@over("pattern", ["(a|a|aa)*b", "(?:a+)+b", "a?" * 60 + "a" * 60 + "b"])
def test_time_is_linear(pattern: str) -> None:
    """Backtracking would take longer than the world."""
    slot = RowSlot(schema_of(pattern), 4)
    started = time.process_time()
    ((rows, _),) = list(slot.batches([{"x": "a" * 20_000, "y": 1}]))
    assert rows == 1 and time.process_time() - started < 5


@over(
    ("pattern", "group", "problem"),
    [
        ("(a", 0, "pattern: expected ) at 2"),
        ("a)", 0, "pattern: expected the pattern's end at 1"),
        ("*a", 0, "pattern: expected a letter at 0, got '*'"),
        ("(a?)*", 0, "pattern: expected what takes a letter before a repetition at 5"),
        ("[b-a]", 0, "pattern: expected a range from lower to higher"),
        ("[a", 0, "pattern: expected ] at the pattern's end"),
        ("a{3,2}", 0, "pattern: expected the lower count first, got 3 and 2"),
        (r"\1", 0, "pattern: expected d, w, s, n, t, r or a sign behind"),
        ("(?=a)", 0, "pattern: expected a letter at 1"),
        ("a\\", 0, "pattern: expected something behind the last"),
        ("(?:a{900}){900}", 0, f"pattern: expected a pattern of at most {MOST_STEPS:,} steps"),
        ("(" * 60 + "a" + ")" * 60, 0, "pattern: expected at most 50 groups within each other"),
        ("(a)", 2, "group: expected at most 1, the pattern's groups, got 2"),
    ],
)
def test_mistakes(pattern: str, group: int, problem: str) -> None:
    with pytest.raises(UserMistake) as raised:
        schema_of(pattern, group)
    assert problem in str(raised.value)
