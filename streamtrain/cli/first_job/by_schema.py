"""Decides what columns are by a schema alone, where there are no rows: a guess, and the other choice beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from streamtrain.cli.first_job import schema_fields as kinds
from streamtrain.cli.first_job.cells import SampledColumn
from streamtrain.cli.first_job.label import class_settings, classified
from streamtrain.cli.first_job.sample import Decision, Sample, change_operation
from streamtrain.cli.first_job.schema_fields import Field
from streamtrain.columns.kinds.kind import SKIP, SKIP_HEAD
from streamtrain.columns.paths import place
from streamtrain.errors import UserMistake

CAPACITY = 1_024  # ids for a text's values, of which the schema does not say how many there are
MANY = 'kind = "category", buckets = 262144, embed = 8'
NUMBERS = (kinds.FRACTION, kinds.WHOLE)


def decide_by_schema(source: str, fields: Sequence[Field], labels: Sequence[str]) -> tuple[list[Decision], Sample]:
    """Returns a decision for each field, and the sample without rows that tells their paths.

    Raises UserMistake where a label is no field, or its classes are not known.
    """
    fields, operation = _of_changes(fields)
    paths = {each.name: place(each.path).removeprefix(".") for each in fields if each.path != (each.name,)}
    names = [each.name for each in fields]
    learned = [next((name for name, path in paths.items() if path == each), each) for each in dict.fromkeys(labels)]
    for label in learned:
        if label not in names:
            raise UserMistake(f"--label: expected a field of {source}, one of {', '.join(names)}; got {label!r}")
    when = next((each.name for each in fields if each.kind == kinds.TIME and _column(each).event_time_evidence), "")
    features = [each for each in fields if each.name not in learned]
    decisions = [change_operation(each.name) if each.name == operation else _feature(each, when) for each in features]
    decisions += [_label(source, each, len(learned) > 1) for each in fields if each.name in learned]
    if not any(each.feature for each in decisions):
        raise UserMistake(f"{source}: expected a field to learn {', '.join(learned)} from, found none")
    return decisions, Sample(source, [], learned, paths, operation=operation)


def _of_changes(fields: Sequence[Field]) -> tuple[Sequence[Field], str]:
    """Returns the fields of a change event's row after the change, as Debezium names them, and the operation's name."""
    for above in ((), ("payload",)):
        envelope = {each.path[len(above)] for each in fields if each.path[:-1] and each.path[: len(above)] == above}
        at, operation = len(above), next((each for each in fields if each.path == (*above, "op")), None)
        if operation is None or not {"after", "source"} <= envelope:
            continue
        after = [each for each in fields if each.path[: at + 1] == (*above, "after")]
        named = [replace(each, name="_".join(map(str, each.path[at + 1 :]))) for each in after]
        name = "op"
        while name in {each.name for each in named}:
            name += "_"
        return [replace(operation, name=name), *named], name
    return fields, ""


def _column(field: Field) -> SampledColumn:
    return SampledColumn(field.name, [], 0)


def _feature(field: Field, when: str) -> Decision:
    name, column = field.name, _column(field)
    mean, empty = (', missing = "mean"', ', missing = ""') if field.optional else ("", "")
    number = f'kind = "number", standardize = true{mean}'
    texts = f'kind = "category", vocabulary = {{ capacity = {CAPACITY} }}, embed = 8{empty}'
    many = f"{{ {MANY}{empty} }} for more than {CAPACITY:,} values"
    if "{" in name or "}" in name:
        return Decision(name, reason="a name with braces cannot be in a job file")
    if field.kind == kinds.TIME:
        return _time(field, when)
    if field.kind == kinds.UUID or (field.kind in (kinds.TEXT, kinds.WHOLE) and column.is_named_row):
        return Decision(name, reason="a row's id by its name or type", other=many)
    if field.symbols or field.kind == kinds.BOOLEAN:
        count = len(field.symbols) or 2
        size = f"vocabulary = {{ capacity = {max(16, 1 << count.bit_length())} }}"
        settings = f'kind = "category", {size}, embed = {min(8, max(2, count))}{empty}'
        return Decision(name, settings, f"{count} values by the schema", width=2, feature=True)
    if field.kind == kinds.WHOLE and column.is_named_id():
        return Decision(name, texts, "whole numbers, named as ids", f"{{ {number} }}", width=8, feature=True)
    if field.kind in NUMBERS:
        other = f"{{ {texts} }} for a code" if field.kind == kinds.WHOLE else ""
        return Decision(name, number, f"a {field.kind}", other, width=1, feature=True)
    if field.kind == kinds.TEXT:
        return Decision(name, texts, "a text; how many values there are is not known", many, width=8, feature=True)
    if field.kind == kinds.LIST and field.of in (kinds.TEXT, kinds.WHOLE):
        settings = f'{MANY}, list = true, most = 64, cut = true{empty}'
        return Decision(name, settings, "a list; how long it may be is not known", width=8, feature=True)
    if field.kind == kinds.MAPPING and field.of in NUMBERS:
        settings = 'kind = "sparse", buckets = 262144, most = 256, cut = true'
        return Decision(name, settings, "a map of numbers", feature=True, sparse=True)
    if field.kind == kinds.LIST and field.of == kinds.FRACTION:
        other = f'{{ kind = "vector", size = N, standardize = true{mean} }}'
        return Decision(name, reason="a list of numbers, whose length is not known", other=other)
    return Decision(name, reason=f"{field.kind}{f' of {field.of}' if field.of else ''}")


def _time(field: Field, when: str) -> Decision:
    how = f', unit = "{field.unit}"' if field.unit else ', parse = "iso8601"'
    settings = f'role = "event_time"{how}' + (f', missing = "{SKIP}"' if field.optional else "")
    if field.name == when:
        return Decision(field.name, settings, "a time, named as the event's")
    why = f"a time; {when} is the event time" if when else "a time, but its name does not say that rows happened then"
    return Decision(field.name, reason=why, other=f"{{ {settings} }}")


def _label(source: str, field: Field, several: bool) -> Decision:
    name = field.name
    skip = f', missing = "{SKIP_HEAD if several else SKIP}"' if field.optional else ""
    if len(field.symbols) > 1:
        return classified(name, class_settings(field.symbols, skip), len(field.symbols), "classes by the schema")
    binary = f'role = "label"{skip}'
    if field.kind == kinds.BOOLEAN:
        return Decision(name, binary, "true or false", loss="binary_cross_entropy")
    if field.kind not in NUMBERS:
        raise UserMistake(
            f"--label {name}: expected a number, a boolean or an enum, got {field.kind} in {source}; its classes are "
            "in rows alone: produce some, or give a file of them by --from"
        )
    other = f'{{ {binary} }} and loss = "binary_cross_entropy" if it is 0 or 1' if field.kind == kinds.WHOLE else ""
    settings = f'role = "label", standardize = true{skip}'
    return Decision(name, settings, f"a {field.kind}", other, loss="mean_squared_error")
