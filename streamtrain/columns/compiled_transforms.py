"""A job's [transforms] compiled: which columns each reads, which it makes, and what those are.

A transform reads what stands before it: a column that records give, or one that another transform has made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from streamtrain.columns import transforms
from streamtrain.columns.column import Column, format_error
from streamtrain.columns.expression import problems as expression_problems
from streamtrain.columns.kinds.parsed import has_one_text
from streamtrain.columns.names import expand
from streamtrain.columns.transforms.transform import HASH, NUMBER, TEXT, TIME, Result, Source, Transform, Use
from streamtrain.columns.transforms.with_state import BESIDE, WithState, feeder
from streamtrain.compute.stateful.transform import Reads, StatefulSpec

Table = Mapping[str, Any]
WHERE = "where"  # the name of the condition of [records] among transforms; nothing can read it
_EXPRESSION = "expr"  # the transform that it is


@dataclass(frozen=True)
class TransformColumn:
    """A column that a transform makes."""

    name: str
    result: Result
    column: Column
    stateful: StatefulSpec | None = None  # made by the model's plan, of what the column's cells are
    feeds: Reads | None = None  # that plan, from a block of its own

    def source(self, use: Use) -> Source:
        """Returns the column as later transforms read it."""
        return Source(self.name, self.result.holds, use.hash_bits, self.result.buckets)

    @property
    def is_bucket(self) -> bool:
        """Returns True if the cells are bucket numbers, which need no hash."""
        return self.result.buckets is not None and self.column.entry.block == "categories"


@dataclass(frozen=True)
class CompiledTransform:
    """One transform at work."""

    transform: str
    use: Use
    columns: tuple[TransformColumn, ...]

    @cached_property
    def entry(self) -> Transform:
        return transforms.get(self.transform)

    @property
    def reads(self) -> list[str]:
        return [source.name for source in self.use.sources]


class TransformError(ValueError):
    """An error that lists what is wrong with a transform. A problem begins with its setting's name if it has one."""


def expanded(given: Iterable[tuple[str, Table]]) -> Iterator[tuple[str, Table]]:
    """Transforms by name, braces expanded: those of settings go in step with the name's. MakingError."""
    for pattern, table in given:
        try:
            names = expand(pattern)
            for index, name in enumerate(names):
                braces = name != pattern
                yield name, {
                    setting: transforms.in_step(len(names), index, value, expand) if braces else value
                    for setting, value in table.items()
                }
        except ValueError as error:
            raise TransformError(f"{pattern}: {error}") from None


def sources(columns: Iterable[tuple[str, Column]]) -> dict[str, Source]:
    """Returns what transforms may read of the columns in records, by column name."""
    found: dict[str, Source] = {}
    for name, column in columns:
        holds = column.entry.holds(column)
        if holds is not None:
            found[name] = Source(name, holds, getattr(column, "hash_bits", 32) if holds == TEXT else 32)
    return found


def compiled(
    name: str, table: Table, before: Mapping[str, Source], unreadable: Mapping[str, str], event: str | None = None
) -> list[CompiledTransform]:
    """A transform over the columns `before` it; of one with state what feeds it. `unreadable`: why there are others
    that none may read; `event`: the column that says when rows happened. MakingError."""
    try:
        entry_name, given, rest = transforms.taken_apart(table)
        entry = transforms.get(entry_name)
        reads = entry.reads(transforms.options(entry_name), given)
    except ValueError as error:
        raise TransformError(str(error)) from None
    problems = [f"expected another column, got {each}, {unreadable[each]}" for each in reads if each in unreadable]
    problems += [problem for each in reads if each not in unreadable for problem in transforms.unknown(each, before)]
    if problems:
        raise TransformError("; ".join(problems))
    hash_bits = 64 if rest.get("hash_bits") == 64 else 32
    use = Use(name, given, tuple(before[each] for each in reads), hash_bits)
    problems = list(entry.problems(use))
    if problems:
        raise TransformError("; ".join(problems))
    if isinstance(entry, WithState):
        return list(_feeding(entry_name, entry, use, rest, before.get(event or "")))
    return [CompiledTransform(entry_name, use, tuple(_columns(name, rest, entry.results(use))))]


def beside(name: str, reads: Reads, source: Source) -> CompiledTransform:
    """Returns the compiled transform that puts a source into a block of the plan, beside a column that itself has
    state."""
    native, result = feeder(reads, source)
    output = TransformColumn(name, result, Column.model_validate(BESIDE[reads]), None, reads)
    return CompiledTransform(native, Use(name, {native: source.name}, (source,), 32), (output,))


def condition(text: str, before: Mapping[str, Source], unreadable: Mapping[str, str]) -> CompiledTransform:
    """The condition of [records] as the last transform. MakingError."""
    try:
        (found,) = compiled(WHERE, {_EXPRESSION: text, "role": "input"}, before, unreadable)
    except TransformError as error:
        raise TransformError(str(error).removeprefix(f"{_EXPRESSION}: ")) from None
    holds = {source.name: source.holds for source in found.use.sources}
    for problem in expression_problems(text, holds, condition=True):
        raise TransformError(problem)
    return found


def _feeding(
    transform: str, entry: WithState, use: Use, rest: Table, event: Source | None
) -> Iterator[CompiledTransform]:
    """Yields the compiled transforms that put the sources of a transform with state into its blocks.

    The first one makes the transform's own column.
    """
    for reads, index in entry.entry.feeds(use.given):
        source = event if index < 0 else use.sources[index]
        if source is None:
            raise TransformError('half_life: expected a column with role = "event_time" beside it, got none')
        native, result = feeder(reads, source)
        try:
            column = Column.model_validate(entry.column(use, reads, rest))
        except ValidationError as error:
            raise TransformError("; ".join(format_error(each) for each in error.errors())) from None
        is_first = (reads, index) == entry.entry.feeds(use.given)[0]
        stateful = entry.stateful(transform, use, rest) if is_first else None
        if stateful is not None:
            problems = [*entry.misplaced(stateful, use, rest), entry.entry.problem(stateful), _misfit(result, column)]
            for problem in filter(None, problems):
                raise TransformError(problem)
        name = use.name if is_first else f"{use.name}.{reads}"
        output = TransformColumn(name, result, column, stateful, reads)
        yield CompiledTransform(native, Use(name, {native: source.name}, (source,), use.hash_bits), (output,))


def _columns(name: str, rest: Table, results: Sequence[Result]) -> Iterator[TransformColumn]:
    for setting in ("path", "from"):
        if setting in rest:
            raise TransformError(f"{setting}: expected none, such cells stand in no record, got {rest[setting]!r}")
    for result in results:
        column_name = f"{name}_{result.suffix}" if result.suffix else name
        settings = {**_implied(result, rest), **rest}
        try:
            column = Column.model_validate(settings)
        except ValidationError as error:
            raise TransformError("; ".join(format_error(each) for each in error.errors())) from None
        if problem := _misfit(result, column):
            raise TransformError(problem)
        yield TransformColumn(column_name, result, column)


def _implied(result: Result, rest: Table) -> dict[str, Any]:
    """Returns the settings that a made column gets from its result if the job does not set them."""
    is_input = rest.get("role") == "input"
    if result.holds == TIME:
        return {} if "role" in rest and not is_input else {"kind": "time"}
    if "kind" in rest or ("role" in rest and not is_input):
        category = rest.get("kind") == "category" and not is_input
        return {"buckets": result.buckets} if category and result.buckets is not None else {}
    if result.holds in (TEXT, HASH):
        return {"kind": "category"}
    if result.buckets is not None and not is_input:
        return {"kind": "category", "buckets": result.buckets}
    return {}


def _misfit(result: Result, column: Column) -> str | None:
    """Why a result is nothing to its column."""
    kind = column.entry
    holds = kind.holds(column)
    if kind.cells(column) != "value":
        return "expected a column of single values, got one of lists"
    if result.holds == TIME and holds != TIME:
        return "expected a column of times for what holds times; say kind = \"time\", or role = \"event_time\""
    if result.holds != TIME and holds == TIME:
        return f"kind: expected another than a time's for what holds a {result.holds}"
    if result.holds == HASH and holds != TEXT:
        return "kind: expected a category for what is hashed"
    if result.holds == TEXT and not kind.takes_text(column):
        return "kind: expected one that takes text, or parse = \"decimal\", for what holds a text"
    if result.holds == NUMBER and kind.role == "input" and holds != NUMBER:
        return f"kind: expected a number for an input that holds numbers, got {column.kind}"
    if column.role == "key":
        return "role: expected another, a key is read by the producer alone"
    if getattr(column, "unit", None) not in (None, "ms"):
        return "unit: expected none, a time that a transform gives counts milliseconds"
    if has_one_text(getattr(column, "parse", None)) and (result.holds == HASH or result.buckets is not None):
        return f'parse: expected none for what is hashed, got "{column.parse}"'
    if result.buckets is None or kind.block != "categories":
        return None
    if column.buckets != result.buckets:
        return f"buckets: expected none, there are {result.buckets}; got {column.buckets}"
    number = column.missing
    if column.has_stand_in and not (type(number) is int and 0 <= number < result.buckets):
        expected = f'"dead_letter", "skip" or the number of one of {result.buckets} buckets'
        return f"missing: expected {expected}, got {number!r}"
    return None
