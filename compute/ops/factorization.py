"""The products of all pairs of fields, added: the second order of a factorization machine (Rendle, 2010)."""

from __future__ import annotations

from streamtrain.compute.spec import Op, given, out, size

HELP = "the sum of the products of all pairs of fields, row by row"
_FIELDS = ("f32", "rows", "fields", "width")

OPS = (
    Op("factorization_forward",
       (size("rows"), size("fields"), size("width"), given("x", *_FIELDS), out("y", "f32", "rows")),
       rows=("rows",), tiles="rows"),
    Op("factorization_gradient",
       (size("rows"), size("fields"), size("width"), given("dy", "f32", "rows"), given("x", *_FIELDS),
        out("dx", *_FIELDS)),
       rows=("rows",), tiles="rows"),
)
