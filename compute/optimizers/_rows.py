"""The arguments all <optimizer>_rows kernels share."""

from streamtrain.compute.builder import Builder, Table
from streamtrain.compute.spec import Ref


def touched(builder: Builder, table: Table) -> tuple[Ref | int | None, ...]:
    """rows, entries, columns, column, buckets, dim, step, ends, categories, lead, g, p."""
    buckets, dim = table.parameter.shape
    entries, columns = table.categories.shape
    return (builder.rows, entries, columns, table.column, buckets, dim, builder.step, table.ends, table.categories,
            table.lead, table.gradient, table.parameter)
