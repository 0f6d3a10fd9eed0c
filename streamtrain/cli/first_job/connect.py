"""Decimals of Kafka Connect in JSON with its schema: base64 of bytes, whose scale the schema or the cell tells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamtrain.columns.kinds.parsed import CONNECT_DECIMAL, connect_decimal, is_connect
from streamtrain.columns.paths import MOST_STEPS, Path

DECIMAL, VARIABLE = "org.apache.kafka.connect.data.Decimal", "io.debezium.data.VariableScaleDecimal"
REMEDY = 'set decimal.handling.mode to "double" or "string" in Debezium, numeric.mapping to best_fit in the JDBC source'


class ConnectDecimal(float):
    """A decimal's value, with its scale."""

    scale = 0


@dataclass(frozen=True)
class Decimals:
    """Decimals by their paths: the scales of those that a column reads, and why it does not read the others."""

    scales: dict[Path, int] = field(default_factory=dict)
    unreadable: dict[Path, str] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]]) -> Decimals:
        """Returns those of the schemas that rows hold beside their payloads."""
        schemas: list[Any] = []
        for row in rows:
            if "payload" in row and (schema := row.get("schema")) not in schemas:
                schemas.append(schema)
        found = Decimals()
        for path, scale in (each for schema in schemas for each in _decimals(schema, ("payload",))):
            if scale is None:
                found.unreadable[path] = f"a decimal in base64 beside its scale, which no column reads; {REMEDY}"
            elif found.scales.setdefault(path, scale) != scale:
                found.unreadable[path] = f"a decimal in base64 of more than one scale, which no column reads; {REMEDY}"
        return found

    def __bool__(self) -> bool:
        return bool(self.scales or self.unreadable)

    def read(self, row: Mapping[str, Any], above: Path = ()) -> dict[str, Any]:
        """Returns a row with numbers in place of decimals; those that no column reads are missing."""
        return {
            key: None if (*above, key) in self.unreadable
            else self.read(cell, (*above, key)) if isinstance(cell, dict) and len(above) < MOST_STEPS
            else _number(cell, self.scales.get((*above, key)))
            for key, cell in row.items()
        }  # fmt: skip


def _number(cell: Any, scale: int | None) -> Any:
    """Returns the number of a decimal, None of a text that is none; any other cell as it is."""
    if scale is None or not isinstance(cell, str):
        return cell
    number = connect_decimal(cell, scale)
    if number is None:
        return None
    found = ConnectDecimal(number)
    found.scale = scale
    return found


def _decimals(schema: Any, path: Path) -> Iterator[tuple[Path, int | None]]:
    """Yields paths and scales, None where each cell has its own."""
    if not isinstance(schema, dict):
        return
    name, parameters = schema.get("name"), schema.get("parameters")
    if name in (DECIMAL, VARIABLE):
        scale = str(parameters.get("scale")) if isinstance(parameters, dict) else ""
        is_known = name == DECIMAL and is_connect(f"{CONNECT_DECIMAL}:{scale}")
        yield path, int(scale) if is_known else None
    elif isinstance(fields := schema.get("fields"), list) and len(path) < MOST_STEPS:
        for each in fields:
            if isinstance(each, dict) and isinstance(each.get("field"), str):
                yield from _decimals(each, (*path, each["field"]))
