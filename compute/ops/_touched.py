"""The arguments of kernels that go over the touched rows of tables. These are a batch's entries, of which the leading
ones have a gradient (compute/ops/embedding.py)."""

from __future__ import annotations

from streamtrain.compute.ops import embedding
from streamtrain.compute.spec import given, size

SIZES = tuple(size(name) for name in ("rows", "entries", "columns", "tables", "total"))
ENDS = given("ends", "i32", "rows", optional=True)   # of each row's entries; without, a row has one
LEAD, GRADIENT = given("lead", "i32", "tables", "entries"), given("g", "f64", "entries", "total")
TOUCHED = (embedding.PLACES, ENDS, given("categories", "i32", "entries", "columns"), LEAD, GRADIENT)
