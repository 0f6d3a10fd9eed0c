"""Record formats: each file that has a HELP is one; its native half is native/decode/formats/<stem>.h.

A format module has HELP and what is to be known before records are read: OPTIONS, the settings that [records] takes
beside its name, which its functions take as keywords, and what else the functions here ask. Its slow meaning and its
examples are tests/oracles/<stem>.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any

from streamtrain.columns.kinds.parsed import is_connect
from streamtrain.compute.options import Options, Problem, problems, read
from streamtrain.errors import UserMistake
from streamtrain.registry import Registry

REGISTRY = Registry(__name__, "records.format")
format_names: Callable[[], list[str]] = REGISTRY.names
record_format: Callable[[str], ModuleType] = REGISTRY.get

_FORMS = {"value": "values", "list": "lists", "pairs": "lists of pairs"}  # of cells
Format = str | Mapping[str, Any]  # its name, or {"name": …} with its options


def options(name: str) -> Options:
    """Returns the options that a format takes beside its name."""
    return getattr(record_format(name), "OPTIONS", {})


def option_problems(name: str, given: Mapping[str, Any], what: str) -> Iterator[Problem]:
    """Everything that is wrong with a format's options: each by itself, else together: problems(**options)."""
    known = options(name)
    alone = list(problems(given, known, what))
    yield from alone
    together: Callable[..., Iterator[Problem]] | None = getattr(record_format(name), "problems", None)
    if together is not None and not alone:
        yield from together(**read(given, known))


def needs_schema(name: str) -> bool:
    """Returns True if the format's records cannot be read without their schema."""
    return getattr(record_format(name), "NEEDS_SCHEMA", False)


def lacks_schema(format: Mapping[str, Any]) -> bool:
    """Returns True if the format needs a schema and it is not known yet: a registry has it."""
    return needs_schema(str(format["name"])) and not format["schema"]


def checked(format: Mapping[str, Any]) -> dict[str, Any]:
    """{"name": …} and options, as a manifest or a log may hold them. UserMistake where this build has none such."""
    name, given = str(format.get("name")), {key: value for key, value in format.items() if key != "name"}
    wrong = next(option_problems(name, given, f"setting of {name}"), None)
    if wrong is not None:
        raise UserMistake(f"records.{wrong.name}: {wrong}")
    found = {"name": name, **read(given, options(name))}
    if lacks_schema(found):
        raise UserMistake(f"records.schema: missing, expected {options(name)['schema'].help}")
    return found


def is_lines(format: Format) -> bool:
    """Returns True if the format's records are lines of text that hold features by index. Its module has LINES."""
    return getattr(_of(format)[0], "LINES", False)


def has_namespaces(format: Format) -> bool:
    """Returns True if features of the format have namespaces, of which columns may name some. Its module has
    NAMESPACES."""
    return hasattr(_of(format)[0], "NAMESPACES")


def for_columns(name: str, columns: Iterable[Any]) -> Format:
    """Returns the format with the options that the columns have taken from one such: of_columns() the other way."""
    given: dict[str, Any] = {}
    for setting, option in getattr(record_format(name), "OF_COLUMNS", {}).items():
        values = {getattr(column, setting) for column in columns} - {None}
        if len(values) > 1:
            raise UserMistake(f"{setting}: expected one for all columns that a file of {name} gives, got {values}")
        given |= dict.fromkeys([option] if values else [], *values)
    return {"name": name, **given}


def of_columns(format: Format) -> dict[str, Any]:
    """Settings that columns have of it where they do not say their own: a module's OF_COLUMNS, by its options."""
    module, given = _of(format)
    return {name: given[option] for name, option in getattr(module, "OF_COLUMNS", {}).items()}


def mistakes(format: Format, schema: Any) -> Iterator[tuple[str, str]]:
    """(column, what is wrong) of a Schema whose cells such records cannot give: mistakes(schema, **options).

    A module's CELLS say what a cell may be: "value", alone where it has none, "list", "pairs"; one that has NAMESPACES
    takes columns of some. CONNECT_DECIMALS: its records may have decimals of
    Kafka Connect.
    """
    module, given = _of(format)
    cells, names = getattr(module, "CELLS", ("value",)), schema.record_names
    for name, column in schema.columns:
        if name in names and (form := column.entry.cells(column)) not in cells:
            yield name, f"expected a format whose cells may be {_FORMS[form]}, got {module.__name__.rpartition('.')[2]}"
        elif name in names and getattr(column, "namespaces", None) is not None and not has_namespaces(format):
            got = module.__name__.rpartition(".")[2]
            yield name, f"namespaces: expected a format whose features stand in some, such as vw, got {got}"
        elif name in names and is_connect(getattr(column, "parse", None)) and not hasattr(module, "CONNECT_DECIMALS"):
            got = module.__name__.rpartition(".")[2]
            yield name, f"parse: expected records of format json for {column.parse!r}, got {got}"
    found: Callable[..., Iterator[tuple[str, str]]] | None = getattr(module, "mistakes", None)
    if found is not None:
        yield from found(schema, **given)


def _of(format: Format) -> tuple[ModuleType, dict[str, Any]]:
    if isinstance(format, str):
        return record_format(format), read({}, options(format))
    return record_format(format["name"]), {name: value for name, value in format.items() if name != "name"}
