"""Avro schemas: checked, their names made full, what nobody reads left out.

https://avro.apache.org/docs/1.12.0/specification/
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from streamtrain.compute.options import Document

Type = str | list[Any] | dict[str, Any]  # as `canonical` has it: every name is full
PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
LOGICAL = {
    "date": ("int",), "time-millis": ("int",), "time-micros": ("long",),
    "timestamp-millis": ("long",), "timestamp-micros": ("long",), "timestamp-nanos": ("long",),
    "local-timestamp-millis": ("long",), "local-timestamp-micros": ("long",), "local-timestamp-nanos": ("long",),
    "decimal": ("bytes", "fixed"), "uuid": ("string", "fixed"),
}  # fmt: skip
# milliseconds of one, as a fraction, of what counts from 1970 in UTC
MOMENTS = {
    "date": (86_400_000, 1), "timestamp-millis": (1, 1), "timestamp-micros": (1, 1000),
    "timestamp-nanos": (1, 1_000_000),
}  # fmt: skip
_DEEPEST = 64  # types within each other
_NAMED = ("record", "error", "enum", "fixed")
_Elsewhere = tuple[dict[str, Any], str]  # a type's definition in another schema, and the namespace around it
_FIXED_BYTES = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_MOST_FIXED = 1 << 31


@dataclass(frozen=True)
class Rows:
    """A schema of rows: `row` is a record; `many`: a datum is an array of them. `named`: every type that has a name."""

    row: dict[str, Any]
    many: bool
    named: Mapping[str, dict[str, Any]]
    sizes: dict[str, int | None] = field(default_factory=dict)  # of records, as far as they have been asked for

    def resolved(self, given: Type) -> Type:
        """A type in the place of its name."""
        return self.named.get(given, given) if isinstance(given, str) else given

    def fixed_bytes(self, given: Type) -> int | None:
        """Returns how many bytes every value takes; None if values differ in size."""
        found = self.resolved(given)
        kind = kind_of(found)
        if kind in _FIXED_BYTES:
            return _FIXED_BYTES[kind]
        if not isinstance(found, dict) or kind not in ("fixed", "record"):
            return None
        if kind == "fixed":
            return int(found["size"])
        name = str(found["name"])
        if name not in self.sizes:
            self.sizes[name] = None  # as long as it is looked at: one that holds itself takes no fixed number
            each = [self.fixed_bytes(inner["type"]) for inner in found["fields"]]
            self.sizes[name] = None if None in each else sum(filter(None, each))
        return self.sizes[name]


def kind_of(given: Type) -> str:
    """Returns the type's word in the specification; "union" for a list."""
    if isinstance(given, list):
        return "union"
    return given if isinstance(given, str) else str(given["type"])


def logical_of(given: Type) -> str:
    """Returns the logical type, "" if it has none."""
    return str(given.get("logicalType", "")) if isinstance(given, dict) else ""


@lru_cache(64)
def canonical(text: str, others: tuple[str, ...] = ()) -> str:
    """The schema as settings hold it: JSON without spaces. ValueError says what is wrong with it.

    A name that it does not define itself is a type of one of the `others`, and is defined where it comes first.
    """
    elsewhere: dict[str, _Elsewhere] = {}
    for other in others:
        _gather_given(_loaded(other), "", elsewhere, 0)
    found = _Reader(elsewhere).read(_loaded(text), "", "$", 0)
    row = found["items"] if isinstance(found, dict) and found["type"] == "array" else found
    if not isinstance(row, dict) or row["type"] != "record":
        raise ValueError(f"expected a record, or an array of them, got {kind_of(found)}")
    return json.dumps(found, separators=(",", ":"), ensure_ascii=False)


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"no JSON: {error}") from None


def _gather_given(given: Any, namespace: str, found: dict[str, _Elsewhere], depth: int) -> None:
    """Every type with a name, by its full name; what is wrong with it is told where it is read."""
    if depth > _DEEPEST:
        raise ValueError(f"types nested deeper than {_DEEPEST}")
    if isinstance(given, list):
        for branch in given:
            _gather_given(branch, namespace, found, depth + 1)
    if not isinstance(given, dict):
        return
    inside = namespace
    if isinstance(given.get("name"), str) and given.get("type") in _NAMED:
        space = given.get("namespace", namespace)
        full = _full(given["name"], space if isinstance(space, str) else namespace)
        found.setdefault(full, (given, namespace))
        inside = full.rpartition(".")[0]
    fields = given.get("fields")
    types = [each.get("type") for each in fields if isinstance(each, dict)] if isinstance(fields, list) else []
    for inner in (given.get("type"), given.get("items"), given.get("values"), *types):
        if isinstance(inner, dict | list):
            _gather_given(inner, inside, found, depth + 1)


@lru_cache(64)
def rows_of(text: str) -> Rows:
    """Returns the Rows of a schema text that `canonical` returned."""
    top = json.loads(text)
    many = top["type"] == "array"
    named: dict[str, dict[str, Any]] = {}
    _gather(top, named)
    return Rows(top["items"] if many else top, many, named)


def _gather(given: Any, named: dict[str, dict[str, Any]]) -> None:
    if isinstance(given, list):
        for branch in given:
            _gather(branch, named)
    if not isinstance(given, dict):
        return
    if "name" in given:
        named[given["name"]] = given
    for inner in (given.get("items"), given.get("values"), *(each["type"] for each in given.get("fields", ()))):
        _gather(inner, named)


class _Reader:
    """Reads one schema; knows the names that have been given so far, and those that others define."""

    def __init__(self, elsewhere: Mapping[str, _Elsewhere]) -> None:
        self._kinds: dict[str, str] = {}  # by full name
        self._elsewhere = elsewhere

    def read(self, given: Any, namespace: str, where: str, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError(f"at {where}: types nested deeper than {_DEEPEST}")
        if isinstance(given, str):
            return self._reference(given, namespace, where, depth)
        if isinstance(given, list):
            return self._union(given, namespace, where, depth)
        if not isinstance(given, dict) or "type" not in given:
            raise ValueError(f"at {where}: expected a type, got {json.dumps(given)[:80]}")
        kind = given["type"]
        if isinstance(kind, dict | list):
            return self.read(kind, namespace, where, depth + 1)
        if kind in ("array", "map"):
            inner = "items" if kind == "array" else "values"
            return {"type": kind, inner: self.read(given.get(inner), namespace, f"{where}.{inner}", depth + 1)}
        if kind in _NAMED and self._is_known(given, namespace):
            return _full(given["name"], str(given.get("namespace", namespace)))
        if kind in ("record", "error"):
            return self._record(given, namespace, where, depth)
        if kind in ("enum", "fixed"):
            return self._named(given, kind, namespace, where)
        if kind not in PRIMITIVES:
            return self._reference(kind, namespace, where, depth)
        logical = _logical(given, kind)
        return {"type": kind, **logical} if logical else kind

    def _is_known(self, given: dict[str, Any], namespace: str) -> bool:
        """Returns True if this exact definition, of another schema, was read before because a name of it came first."""
        name, space = given.get("name"), given.get("namespace", namespace)
        if not isinstance(name, str) or not isinstance(space, str):
            return False
        full = _full(name, space)
        return full in self._kinds and full in self._elsewhere and self._elsewhere[full][0] == given

    def _reference(self, name: Any, namespace: str, where: str, depth: int) -> Any:
        if name in PRIMITIVES:
            return str(name)
        for full in (_full(name, namespace), name) if isinstance(name, str) else ():
            if full in self._kinds:
                return full
            if full in self._elsewhere:
                definition, space = self._elsewhere[full]
                found = self.read(definition, space, f"{where}({full})", depth + 1)
                return {**found, "namespace": ""} if "." not in full and namespace else found
        raise ValueError(f"at {where}: expected a type, got {json.dumps(name)[:80]}, which nothing before it defines")

    def _union(self, given: list[Any], namespace: str, where: str, depth: int) -> list[Any]:
        branches = [self.read(each, namespace, f"{where}[{i}]", depth + 1) for i, each in enumerate(given)]
        kinds = [branch if isinstance(branch, str) else branch.get("name", branch["type"])
                 for branch in branches if not isinstance(branch, list)]  # fmt: skip
        if not branches or len(kinds) < len(branches) or len(set(kinds)) < len(kinds):
            raise ValueError(f"at {where}: expected a union of different types, none of them a union")
        return branches

    def _define(self, given: dict[str, Any], kind: str, namespace: str, where: str) -> dict[str, Any]:
        name = given.get("name")
        if not isinstance(name, str) or not name:
            raise ValueError(f"at {where}: expected the {kind}'s name, got {json.dumps(name)[:80]}")
        space = given.get("namespace", namespace)
        full = _full(name, space if isinstance(space, str) else namespace)
        if full in self._kinds:
            raise ValueError(f"at {where}: {full} is defined twice")
        self._kinds[full] = kind
        # a name without a namespace within one that has one would be taken for that one's
        return {"type": kind, "name": full, **({"namespace": ""} if "." not in full and namespace else {})}

    def _record(self, given: dict[str, Any], namespace: str, where: str, depth: int) -> dict[str, Any]:
        definition = self._define(given, "record", namespace, where)
        inside = definition["name"].rpartition(".")[0]
        fields: dict[str, dict[str, Any]] = {}
        if not isinstance(given.get("fields"), list):
            raise ValueError(f"at {where}: expected the fields of {definition['name']}")
        for each in given["fields"]:
            name = each.get("name") if isinstance(each, dict) else None
            if not isinstance(name, str) or not name or name in fields:
                raise ValueError(
                    f"at {where}: expected fields of {definition['name']} with different names, got {name!r}"
                )
            found = {"name": name, "type": self.read(each.get("type"), inside, f"{where}.{name}", depth + 1)}
            kept = {key: each[key] for key in ("aliases", "default") if key in each}
            fields[name] = {**found, **kept}
        return {**definition, "fields": list(fields.values())}

    def _named(self, given: dict[str, Any], kind: str, namespace: str, where: str) -> dict[str, Any]:
        definition = self._define(given, kind, namespace, where)
        if kind == "enum":
            symbols = given.get("symbols")
            if not isinstance(symbols, list) or not symbols or not all(isinstance(each, str) for each in symbols):
                raise ValueError(f"at {where}: expected the symbols of {definition['name']}")
            if len(set(symbols)) < len(symbols):
                raise ValueError(f"at {where}: expected different symbols of {definition['name']}")
            return {**definition, "symbols": symbols}
        size = given.get("size")
        if type(size) is not int or not 0 <= size < _MOST_FIXED:
            raise ValueError(f"at {where}: expected the size of {definition['name']}, got {json.dumps(size)[:80]}")
        return {**definition, "size": size, **_logical(given, kind)}


def _full(name: str, namespace: str) -> str:
    return f"{namespace}.{name}" if namespace and "." not in name else name


def _logical(given: dict[str, Any], kind: str) -> dict[str, Any]:
    """A type's logical type; one that is unknown, or does not go with the type, counts for nothing."""
    logical = given.get("logicalType")
    if not isinstance(logical, str) or kind not in LOGICAL.get(logical, ()):
        return {}
    if logical == "uuid" and kind == "fixed" and given.get("size") != 16:
        return {}
    if logical != "decimal":
        return {"logicalType": logical}
    precision, scale = given.get("precision"), given.get("scale", 0)
    if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision <= 1000 or not precision:
        return {}
    return {"logicalType": logical, "precision": precision, "scale": scale}


def _is_text(given: str) -> bool:
    return given.lstrip()[:1] in ("{", "[", '"')


SCHEMA = Document(
    default="",
    what="an Avro schema",
    is_text=_is_text,
    reading=canonical,
    help="of the records: a record, or an array of records; the file's name, as seen from the job file; "
    "with [registry] the newest of the topic's subject where it is not given",
)
