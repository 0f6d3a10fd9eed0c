"""Cells of pyarrow's columns as arrays and Python values, which take neither pandas nor a time zone database."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamtrain.errors import UserMistake

_UNITS = {"time32[s]": "s", "time32[ms]": "ms", "time64[us]": "us", "time64[ns]": "ns", "date32[day]": "D",
          "date64[ms]": "ms"}  # fmt: skip
_NAT = np.iinfo(np.int64).min


def of_arrow(values: Any) -> NDArray[Any] | list[Any]:
    """A column as an array where it has no nulls, and of times also where it has, else as a list.

    A timestamp or a date is a datetime64, a time of a day or a duration a timedelta64, both in the column's unit.
    UserMistake for a type whose cells cannot be read.
    """
    import pyarrow

    if isinstance(values, pyarrow.ChunkedArray):
        values = values.combine_chunks() if values.num_chunks != 1 else values.chunk(0)
    values = _plain(values)
    if (unit := _unit(values.type)) is not None:
        return _counts(values, unit)
    if pyarrow.types.is_nested(values.type) or pyarrow.types.is_decimal(values.type):
        plain_list = pyarrow.types.is_list(values.type) or pyarrow.types.is_large_list(values.type)
        plain_list |= pyarrow.types.is_fixed_size_list(values.type)
        is_flat = plain_list and not values.null_count and pyarrow.types.is_primitive(values.type.value_type)
        if not is_flat or _unit(values.type.value_type) is not None:
            return cells_of(values)
    return _listed(values) if values.null_count else values.to_numpy(zero_copy_only=False)


def cells_of(values: Any) -> list[Any]:
    """An array's cells as Python values, times as NumPy's; whole decimals are int. UserMistake as of_arrow()."""
    from pyarrow import types

    values = _plain(values)
    kind = values.type
    if types.is_struct(kind):
        columns = [cells_of(field) for field in values.flatten()]
        rows = zip(*columns, strict=True) if columns else ((),) * len(values)
        names = [field.name for field in kind]
        found = [dict(zip(names, row, strict=True)) for row in rows]
        return [row if is_valid else None for row, is_valid in zip(found, values.is_valid().to_pylist(), strict=True)]
    if types.is_map(kind):
        return [None if not cell.is_valid else _map(cells_of(cell.values)) for cell in values]
    if types.is_nested(kind) and not types.is_union(kind) and _takes_care(kind.value_type):
        return [None if not cell.is_valid else cells_of(cell.values) for cell in values]
    if (unit := _unit(kind)) is not None:
        counts = _counts(values, unit)
        return [None if is_absent else cell for cell, is_absent in zip(counts, np.isnat(counts), strict=True)]
    number: Any = int if types.is_decimal(kind) and kind.scale <= 0 else float if types.is_float16(kind) else None
    found = _listed(values)
    return found if number is None else [None if cell is None else number(cell) for cell in found]


def _listed(values: Any) -> list[Any]:
    from pyarrow import ArrowException

    try:
        found: list[Any] = values.to_pylist()
        return found
    except (ValueError, OverflowError, NotImplementedError, ArrowException) as error:
        raise UserMistake(
            f"cells of the type {values.type} cannot be read: {error}; write another type, or leave it out"
        ) from None


def _plain(values: Any) -> Any:
    """An array without dictionaries, runs, views and extensions."""
    import pyarrow
    from pyarrow import types

    while True:
        kind = values.type
        if types.is_dictionary(kind):
            values = values.dictionary_decode()
        elif types.is_run_end_encoded(kind):
            values = pyarrow.compute.run_end_decode(values)
        elif isinstance(values, pyarrow.ExtensionArray):
            if kind.extension_name == "arrow.uuid":
                return pyarrow.array([None if cell is None else str(cell) for cell in values.to_pylist()], "string")
            values = values.storage
        elif types.is_string_view(kind):
            values = values.cast("large_string")
        elif types.is_binary_view(kind):
            values = values.cast("large_binary")
        else:
            return values


def _takes_care(kind: Any) -> bool:
    """Returns whether to_pylist() does not give what cells_of() gives."""
    from pyarrow import types

    return not (types.is_integer(kind) or types.is_float32(kind) or types.is_float64(kind) or types.is_boolean(kind)
                or types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind))  # fmt: skip


def _map(pairs: list[dict[str, Any]]) -> Any:
    """A map as a dict; as pairs where a key comes twice."""
    listed = [list(pair.values()) for pair in pairs]
    found = dict(map(tuple, listed)) if all(isinstance(key, str) for key, _ in listed) else {}
    return found if len(found) == len(listed) else listed


def _unit(kind: Any) -> str | None:
    """Returns what a time counts; None for another type."""
    from pyarrow import types

    if types.is_timestamp(kind) or types.is_duration(kind):
        return str(kind.unit)
    return _UNITS.get(str(kind))


def _counts(values: Any, unit: str) -> NDArray[Any]:
    from pyarrow import types

    kind = values.type
    whole = values.cast("int32").cast("int64") if kind.bit_width == 32 else values.cast("int64")
    counts: NDArray[Any] = whole.fill_null(_NAT).to_numpy(zero_copy_only=False)
    is_moment = types.is_timestamp(kind) or types.is_date(kind)
    return counts.view(f"{'datetime64' if is_moment else 'timedelta64'}[{unit}]")
