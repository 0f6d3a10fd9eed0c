"""The calls by which a plan adds up the gradients of several batches: of dense parameters, and of each table whole."""

from __future__ import annotations

from collections.abc import Callable

from streamtrain.compute.builder import SUMS, Builder, Tables
from streamtrain.compute.spec import Refs

DENSE, OF_TABLE = "gradient.sum", "gradient.sum."   # names of the buffers, of a table's with its own behind


def backward(builder: Builder) -> Callable[[], None]:
    """Returns a function that adds the calls behind the backward pass.

    Call this before the backward pass is built, and after whatever updates tables is set up.
    """
    update = builder.on_tables

    def on_tables(tables: Tables) -> None:
        update(tables)
        totals = Refs(tuple(
            builder.buffer(f"{OF_TABLE}{each.name}", *each.shape, dtype="f64") for each in tables.parameters.refs
        ))
        with builder.during(*SUMS):
            builder.call("gradient_sum_rows", builder.rows, *tables.sizes, builder.step, tables.places, tables.ends,
                         tables.categories, tables.lead, tables.gradient, totals)

    def dense() -> None:
        if builder.parameters:
            flat = builder.flat("gradient")
            total = builder.buffer(DENSE, flat.elements, dtype="f64")
            with builder.during(*SUMS):
                builder.call("gradient_sum", flat.elements, builder.step, flat, total)

    builder.on_tables = on_tables
    return dense
