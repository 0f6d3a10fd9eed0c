"""The common form of elementwise ops of two arrays: <name>_forward(n, y, a, b), and for some <name>_gradient(n, da,
db, dy, a, b)."""

from __future__ import annotations

from streamtrain.compute.spec import Op, given, out, size

_VECTOR = ("f32", "n")


def forward_of(name: str) -> Op:
    args = (size("n"), out("y", *_VECTOR), given("a", *_VECTOR), given("b", *_VECTOR))
    return Op(f"{name}_forward", args, each=("n",), tiles="rows")


def gradient_of(name: str) -> Op:
    args = (size("n"), out("da", *_VECTOR), out("db", *_VECTOR), *(given(each, *_VECTOR) for each in ("dy", "a", "b")))
    return Op(f"{name}_gradient", args, each=("n",), tiles="rows")
