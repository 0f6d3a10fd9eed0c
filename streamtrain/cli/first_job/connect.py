"""Decimals of Kafka Connect in JSON with its schema: base64 of bytes, whose scale the schema or the cell tells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from streamtrain.columns.paths import MOST_STEPS, Path

DECIMAL, VARIABLE = "org.apache.kafka.connect.data.Decimal", "io.debezium.data.VariableScaleDecimal"
REMEDY = 'set decimal.handling.mode to "double" or "string" in Debezium, numeric.mapping to best_fit in the JDBC source'


def unreadable_decimals(rows: Sequence[Mapping[str, Any]]) -> dict[Path, str]:
    """Returns the paths of decimals, by the schemas that rows hold beside their payloads, and why none can be read."""
    schemas: list[Any] = []
    for row in rows:
        if "payload" in row and (schema := row.get("schema")) not in schemas:
            schemas.append(schema)
    return {path: why for schema in schemas for path, why in _decimals(schema, ("payload",))}


def without(row: Mapping[str, Any], paths: Mapping[Path, str], above: Path = ()) -> dict[str, Any]:
    """Returns a row whose cells at these paths are missing."""
    return {
        key: None if (*above, key) in paths
        else without(cell, paths, (*above, key)) if isinstance(cell, dict) and len(above) < MOST_STEPS
        else cell
        for key, cell in row.items()
    }  # fmt: skip


def _decimals(schema: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if not isinstance(schema, dict):
        return
    name, parameters = schema.get("name"), schema.get("parameters")
    if name == DECIMAL:
        scale = parameters.get("scale") if isinstance(parameters, dict) else None
        yield path, f"a decimal in base64, of scale {scale}, which no column reads; {REMEDY}"
    elif name == VARIABLE:
        yield path, f"a decimal in base64 beside its scale, which no column reads; {REMEDY}"
    elif isinstance(fields := schema.get("fields"), list) and len(path) < MOST_STEPS:
        for field in fields:
            if isinstance(field, dict) and isinstance(field.get("field"), str):
                yield from _decimals(field, (*path, field["field"]))
