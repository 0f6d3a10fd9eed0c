"""Expressions: what they mean, and that nothing which stands in one is run."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from looped import over

from streamtrain.columns.expression import ExpressionError, columns_of, compiled, meaning

HOLDS = {"x": "number", "y": "number", "t": "text", "u": "text", "user.age": "number", "odd name": "number"}


def value(text: str, **cells: float | str | None) -> float | None:
    program = compiled(text, HOLDS)
    found = [cells.get(name.replace(".", "_").replace(" ", "_")) for name in program.columns]
    return meaning(program, found, [cell is not None for cell in found])


@over(
    ("text", "expected"),
    [
        ("x + y * 2", 5), ("(x + y) * 2", 8), ("x - y - 1", 1), ("x / (y - 1)", None), ("-x", -3), ("x > y", 1),
        ("x > y > 2", 0), ("not x > y", 0), ("x in (1, 3)", 1), ("x not in [1, 3]", 0), ("t == 'a'", 1),
        ("'b' == t", 0), ("t != u", None), ("u is missing", 1), ("u is not missing or x > 9", 0), ("t in ('a',)", 1),
        ("u == 'a' or x == 3", 1), ("u == 'a' and x == 4", 0), ("u == 'a' and x == 3", None),
        ("otherwise(user.age, 1 + 1)", 2), ("column('odd name') == 5", 1), ("min(x, y) + max(x, y)", 4),
        ("sqrt(0 - x)", None), ("log(0)", None), ("exp(1000)", None), ("floor(x / 2)", 1), ("abs(y - x)", 2),
        ("1e308 * 10", None), ("1 / (1 / (x - 3))", None),
    ],
)  # fmt: skip
def test_what_it_means(text: str, expected: float | None) -> None:
    assert value(text, x=3, y=1, t="a", odd_name=5) == expected


@over(
    "text",
    ["", " ", "x +", "x; y", "x = 3", "lambda: x", "[x for x in y]", "x.y.z", "f(x)", "min(x)", "x if y else 1",
     "x ** 2", "'a'", "t",
     "t + 1", "t < 'b'", "x == 'a'", "not x", "x and y", "x is y", "x is None", "True", "1j", "...",
     "f'{x}'",
     "x @ y", "x & y", "~x", "column(x)", "column('a', 'b')", "min(*x)", "min(x, y=1)", "9" * 400, "x in ()", "x in y",
     "otherwise(x, 1", "(" * 300 + "x" + ")" * 300, "-" * 3000 + "x", "x" * 5000, "x+" * 300 + "x", "\0", "x\ny",
     "yield x", "await x", "x := 1", "missing", "missing is missing", "x is missing missing",
     "t == 'it''s'", "t == 'a' \"b\""],
)  # fmt: skip
def test_what_it_is_not(text: str) -> None:
    with pytest.raises(ExpressionError):
        compiled(text, HOLDS)


@given(st.text(alphabet="xyt01.+-*/()<>=!'andornotinismissing, ", max_size=40))
def test_any_text_is_answered(text: str) -> None:
    try:
        found = value(text, x=2, y=None, t="a")
    except ExpressionError:
        return
    assert found is None or math.isfinite(found)


def test_its_columns_in_their_order() -> None:
    text = "b + a * b - min(c.d, column('odd name')) > 0 and z is missing"
    assert columns_of(text) == ["b", "a", "c.d", "odd name", "z"]
