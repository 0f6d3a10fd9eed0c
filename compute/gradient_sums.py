"""The calls by which a plan adds up the gradients of several batches: of dense parameters, and of each table whole."""

from __future__ import annotations

from collections.abc import Callable

from streamtrain.compute.builder import SUMS, Builder, Table

DENSE, OF_TABLE = "gradient.sum", "gradient.sum."   # names of the buffers, of a table's with its own behind


def backward(builder: Builder) -> Callable[[], None]:
    """To be called before the way back, behind who updates tables; gives what adds the calls behind it."""
    update = builder.on_table

    def on_table(table: Table) -> None:
        update(table)
        (buckets, dim), (entries, columns) = table.parameter.shape, table.categories.shape
        total = builder.buffer(f"{OF_TABLE}{table.parameter.name}", buckets, dim, dtype="f64")
        with builder.during(*SUMS):
            builder.call("gradient_sum_rows", builder.rows, entries, columns, table.column, buckets, dim, builder.step,
                         table.ends, table.categories, table.lead, table.gradient, total)

    def dense() -> None:
        if builder.parameters:
            flat = builder.flat("gradient")
            total = builder.buffer(DENSE, flat.elements, dtype="f64")
            with builder.during(*SUMS):
                builder.call("gradient_sum", flat.elements, builder.step, flat, total)

    builder.on_table = on_table
    return dense
