"""The arguments all <optimizer>_rows kernels share."""

from streamtrain.compute.builder import Builder, Table
from streamtrain.compute.spec import Ref


def touched(builder: Builder, table: Table) -> tuple[Ref | int, ...]:
    """rows, columns, column, buckets, dim, step, categories, lead, g, p."""
    buckets, dim = table.parameter.shape
    rows, columns = table.categories.shape
    return (rows, columns, table.column, buckets, dim, builder.step, table.categories, table.lead, table.gradient,
            table.parameter)
