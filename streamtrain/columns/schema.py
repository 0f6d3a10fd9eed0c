"""A job's columns compiled for its loss: where each goes in a slot, what engine, decoders and readers need.

The same object in training, in a snapshot's manifest and at prediction: a walk over kinds. Opens nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from streamtrain import _native
from streamtrain.columns.around import FROM
from streamtrain.columns.column import INPUT, LABEL, Column, format_error
from streamtrain.columns.compiled_transforms import CompiledTransform, Table, TransformColumn, TransformError, expanded
from streamtrain.columns.kinds import FEATURE, kinds, roles
from streamtrain.columns.kinds.kind import KEEP, SKIP, SKIP_HEAD, Block
from streamtrain.columns.kinds.number import exact_numbers
from streamtrain.columns.labels import Labels
from streamtrain.columns.names import expand_both
from streamtrain.columns.paths import Path, path_problems, place, steps
from streamtrain.columns.pipeline import Pipeline
from streamtrain.compute import losses, stateful
from streamtrain.compute.losses import LabelKind
from streamtrain.compute.stateful_inputs import BLOCKS, described
from streamtrain.errors import UserMistake


@dataclass(frozen=True)
class Schema:
    """Columns in written order, braces expanded, and the loss that says what the label is."""

    columns: tuple[tuple[str, Column], ...]  # that records give
    loss: str
    requests: bool = False
    transforms: tuple[tuple[str, Table], ...] = field(default=(), hash=False)  # in written order
    where: str | None = None  # the condition of the rows that are not left out
    head_losses: tuple[tuple[str, str], ...] = ()  # of several labels, by their columns; `loss` is "" then
    missing_words: tuple[str, ...] = ()  # that stand for a missing number or time, beside the usual ones

    @classmethod
    def from_columns(
        cls,
        columns: Mapping[str, Column | Mapping[str, Any]],
        loss: str,
        transforms: Mapping[str, Table] | None = None,
        where: str | None = None,
        head_losses: Mapping[str, str] | None = None,
        missing_words: Sequence[str] = (),
    ) -> Schema:
        """Compiles [columns] and [transforms]; `head_losses`: the loss of each label, where they have heads. Raises
        UserMistake with every problem, one a line, each beginning with its column, transform or head."""
        found: list[tuple[str, Column]] = []
        problems: list[str] = []
        for pattern, given in columns.items():
            try:
                column = given if isinstance(given, Column) else Column.model_validate(dict(given))
                found += [
                    (name, column if path == column.path else column.model_copy(update={"path": path}))
                    for name, path in expand_both(pattern, column.path)
                ]
            except ValidationError as error:
                problems += [f"columns.{pattern}: {format_error(each)}" for each in error.errors()]
            except ValueError as error:
                problems.append(f"columns.{pattern}: {error}")
        tables: list[tuple[str, Table]] = []
        try:
            tables += expanded(list((transforms or {}).items()))
        except TransformError as error:
            problems.append(f"transforms.{error}")
        heads = tuple(sorted((head_losses or {}).items()))
        schema = cls(tuple(found), "" if heads else loss, False, tuple(tables), where, heads, tuple(missing_words))
        problems += schema.problems() if not problems else []
        if problems:
            raise UserMistake("\n".join(problems))
        return schema

    def problems(self) -> list[str]:
        """Returns what is wrong with the columns together, each beginning with its column; empty if all is well."""
        found: list[str] = []
        if len(self.columns) > _native.MAX_COLUMNS:
            found.append(f"columns: expected at most {_native.MAX_COLUMNS:,}, got {len(self.columns):,}")
        found += self._pipeline.problems
        if found:
            return found
        names = [name for name, _ in self.every]
        found += [f"columns.{name}: given twice" for name, times in Counter(names).items() if times > 1]
        found += [f"columns.{name}: a name must not be empty" for name in names if not name]
        if any(column.path is not None for _, column in self.columns):
            found += path_problems([(name, column.path) for name, column in self.columns])
        for role in [each for each in roles() if each != LABEL]:
            given = [name for name, column in self.every
                     if column.role == role != INPUT and name not in self._apart]  # fmt: skip
            if len(given) > 1:
                found.append(f"columns.{given[1]}: only one column can be the {role}, and {given[0]} is")
        if not any(column.role == FEATURE for _, column in self.every):
            found.append("columns: expected at least one feature, got none")
        found += self.labelled.problems(self.labels)
        for name, column in self.every:
            loss = self.labelled.loss_of(name)
            problems = column.entry.loss_problems(column, loss) if loss or column.role != LABEL else ()
            found += [f"columns.{name}: {problem}" for problem in problems]
        reading = [output.name for output in self.stateful
                   if output.stateful is not None and stateful.get(output.stateful.transform).reads_label]  # fmt: skip
        expected, got = "a label that is a number, or 0 or 1", "one of classes" if self.loss else "several labels"
        if reading and (not self.loss or self.label_kind == "class"):
            found += [f"transforms.{name}: expected {expected}, got {got}" for name in reading]
        return found

    # what the columns are

    @cached_property
    def _pipeline(self) -> Pipeline:
        return Pipeline(self.columns, self.transforms, self.where, self.labelled.loss_of, self.requests)

    @cached_property
    def labelled(self) -> Labels:
        """Returns the labels with their losses."""
        return Labels(self.loss, self.head_losses)

    @property
    def compiled_transforms(self) -> list[CompiledTransform]:
        """The transforms that are at work, in order; the last of them the condition, where there is one."""
        return self._pipeline.steps

    @property
    def every(self) -> tuple[tuple[str, Column], ...]:
        """The columns that records give, and then those that transforms make and the model, or a row, has."""
        return (*self.columns, *((output.name, output.column) for output in self._pipeline.outputs))

    @property
    def stateful(self) -> list[TransformColumn]:
        """Returns the made columns that the model's plan computes, from what decoders put into separate blocks."""
        return [output for output in self._pipeline.outputs if output.stateful is not None]

    @property
    def fed(self) -> dict[str, TransformColumn]:
        """Returns the columns in those separate blocks, by name."""
        return {output.name: output for output in self._pipeline.outputs if output.feeds is not None}

    def of_kind(self, kind: str) -> list[tuple[str, Column]]:
        """The columns of a kind, with their names, but for what the model's plan makes."""
        return [
            (name, column) for name, column in self.every
            if column.entry is kinds()[kind] and name not in self._apart
        ]  # fmt: skip

    @cached_property
    def _apart(self) -> frozenset[str]:
        """Returns the names of the columns in the blocks of transforms with state."""
        return frozenset(output.name for output in self._pipeline.outputs if output.feeds is not None)

    @property
    def numbers(self) -> list[str]:
        return [name for name, _ in self.of_kind("number")]

    @property
    def categories(self) -> list[str]:
        return [name for name, _ in self.of_kind("category")]

    @property
    def label_kind(self) -> LabelKind:
        """Returns the kind of the label, for a job with one label alone."""
        return losses.label_kind(self.loss)

    @property
    def labels(self) -> list[tuple[str, Column]]:
        """In the order of the heads."""
        return self.of_kind(LABEL)

    @property
    def losses_in_order(self) -> tuple[tuple[str, str], ...]:
        """Returns each of several labels with its own loss; empty if there are no heads."""
        return tuple((name, self.labelled.loss_of(name)) for name, _ in self.labels) if self.head_losses else ()

    @property
    def class_names(self) -> list[str]:
        """The label's class names in order; empty where classes are numbers or there are none."""
        return [name for _, label in self.labels for name in label.names]

    def column_of(self, role: str) -> tuple[str, Column] | None:
        """Name and settings of the one column with this role (label, weight, key, event_time)."""
        return next(((name, column) for name, column in self.every if column.role == role), None)

    def is_decoded(self, name: str, column: Column) -> bool:
        """Returns True if decoders read the column's cells. The cells of other columns may be anything."""
        return name in self._pipeline.readings or self.is_used(column)

    def is_used(self, column: Column) -> bool:
        """Returns True if the model or the row uses the column, and not only transforms."""
        return column.role != INPUT and column.entry.decoded and not (
            self.requests and column.entry.in_requests != "decoded"
        )  # fmt: skip

    def hashing(self, name: str, column: Column) -> tuple[int, int] | None:
        """Bits and seed of the hash that a record may hold in the place of its texts; None where those are read."""
        return None if name in self._pipeline.read_ever else column.entry.hashing(name, column)

    @cached_property
    def exact(self) -> frozenset[str]:
        """The numbers that records must not round to float32: slots hold them as doubles, or transforms read them."""
        return exact_numbers(self.of_kind("number"), self._pipeline.read_ever)

    @property
    def decoded_names(self) -> frozenset[str]:
        return frozenset(name for name, column in self.columns if self.is_decoded(name, column))

    @property
    def record_names(self) -> frozenset[str]:
        """Returns the names of the decoded columns that are in the record, and not in the message metadata."""
        around = {name for name, column in self.columns if column.around is not None}
        return self.decoded_names - around

    @cached_property
    def lists(self) -> dict[str, int]:
        """The columns whose cells are lists, and how deep."""
        forms = {name: column.entry.cells(column) for name, column in self.every}
        return {name: 1 + (form == "pairs") for name, form in forms.items() if form != "value"}

    @property
    def reads_around(self) -> bool:
        """Returns True if the meaning of a record depends on its message metadata."""
        return self.decoded_names != self.record_names

    @cached_property
    def paths(self) -> dict[str, Path]:
        """Returns the paths of the columns whose cells are not at the column's name."""
        return {name: steps(column.path) for name, column in self.columns if column.path is not None}

    @cached_property
    def heads(self) -> frozenset[str]:
        """The keys that the paths of decoded columns begin with."""
        return frozenset(str(self.paths[name][0]) for name in self.paths.keys() & self.record_names)

    # what others need of them

    def for_requests(self) -> Schema:
        """The same for prediction: label, weight and event time are passed over, and no row is left out in silence
        (`skip` becomes `dead_letter`). The slot is the same."""
        return replace(self, requests=True)

    def without_message(self) -> Schema:
        """The same for rows that no message is around: what would be there is a field by the column's name."""
        if all(column.around is None for _, column in self.columns):
            return self
        bare = tuple((name, column.model_copy(update={FROM: None})) for name, column in self.columns)
        return replace(self, columns=bare)

    def block_specs(self) -> list[Block]:
        """The slot's blocks, for SlotLayout.make."""
        found = [block for name, kind in kinds().items() for block in self.labelled.blocks(kind, self.of_kind(name))]
        found += [Block(*BLOCKS[output.feeds], 1) for output in self._pipeline.outputs if output.feeds is not None]
        merged: dict[str, Block] = {}  # what several columns have a part of
        for block in found:
            before = merged.get(block.name)
            merged[block.name] = block if before is None else block._replace(width=before.width + block.width)
        return list(merged.values())

    def engine_inputs(self) -> dict[str, Any]:
        """Returns what the engine needs to know about its input, in the slot's column order."""
        inputs: dict[str, Any] = {}
        bags: list[Any] = []  # of several kinds
        vectors: list[Any] = []  # too
        for name, kind in kinds().items():
            columns = self.of_kind(name)
            given = self.labelled.engine_inputs(columns) if name == LABEL else kind.engine_inputs(columns, self.loss)
            bags += given.pop("bags", [])
            vectors += given.pop("vectors", [])
            inputs |= given
        own = [column.entry.stateful(name, column) for name, column in self.columns if column.role != INPUT]
        stateful_tables = [
            described(each) for each in [*own, *(output.stateful for output in self.stateful)] if each is not None
        ]
        several = {"vectors": vectors, "bags": bags, "held": stateful_tables}
        return inputs | {what: entries for what, entries in several.items() if entries}

    def constants(self) -> dict[str, float]:
        """Returns the value in every row of each block that no column gives, by the block's name."""
        found: dict[str, float] = {}
        for name, kind in kinds().items():
            found |= kind.constants([each for each in self.of_kind(name) if self.is_used(each[1])])
        return found

    def native_columns(self) -> list[dict[str, Any]]:
        """The columns that records give as _native.RecordEncoder takes them."""
        return [self._native_column(name, column) for name, column in self.columns]

    def native_plan(self, layout: _native.SlotLayout, refuses_empty: bool = False) -> _native.DecodePlan:
        """Returns the columns compiled for slots of `layout`, whose blocks must be block_specs(). `refuses_empty`: a
        row that names none of the columns is dead. UserMistake if a package that decodes cells is not installed."""
        for _, column in self.every:
            column.entry.require()
        columns = [*self.native_columns(), *(self._native_output(each) for each in self._pipeline.outputs)]
        transforms = self._pipeline.native(len(self.columns))
        return _native.DecodePlan(columns, self.short_columns(), layout, self.constants(), transforms, refuses_empty)

    def short_columns(self) -> list[int]:
        """For requests: which columns an array row without label and weight holds; empty where that changes nothing."""
        there = [(i, column) for i, (_, column) in enumerate(self.columns) if column.around is None]
        names = [name for name, _ in self.columns]
        kept = [i for i, each in there if each.entry.in_requests != "optional" or self.is_decoded(names[i], each)]
        return kept if self.requests and len(kept) < len(there) else []

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; from_dict gives the same schema back."""
        columns = [{"name": name, **column.settings()} for name, column in self.columns]
        given: dict[str, Any] = {"requests": True} if self.requests else {}
        if self.transforms:
            given["transforms"] = [{"name": name, **table} for name, table in self.transforms]
        if self.where is not None:
            given["where"] = self.where
        if self.head_losses:
            given["heads"] = [list(each) for each in self.head_losses]
        if self.missing_words:
            given["missing_words"] = list(self.missing_words)
        return {"columns": columns, "loss": self.loss, **given}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Schema:
        """The schema of a manifest. Raises UserMistake if it is none."""
        try:
            columns = [dict(column) for column in given["columns"]]
            pairs = tuple((column.pop("name"), Column.model_validate(column)) for column in columns)
            if not all(isinstance(name, str) and name for name, _ in pairs):
                raise TypeError(f"column names {[name for name, _ in pairs]}")
            if not isinstance(given["loss"], str):
                raise TypeError(f"a loss named {given['loss']!r}")
            tables = [dict(table) for table in given.get("transforms", ())]
            transforms = tuple((table.pop("name"), table) for table in tables)
            where = given.get("where")
            if not all(isinstance(name, str) and name for name, _ in transforms) or not isinstance(where, str | None):
                raise TypeError(f"transforms {[name for name, _ in transforms]}, where {where!r}")
            heads = tuple((str(name), str(loss)) for name, loss in given.get("heads", ()))
            words = tuple(map(str, given.get("missing_words", ())))
            schema = cls(pairs, given["loss"], bool(given.get("requests", False)), transforms, where, heads, words)
        except (KeyError, TypeError, ValidationError) as error:
            raise UserMistake(f"schema: expected columns and a loss as to_dict() gives them, got {error}") from None
        if problems := schema.problems():
            raise UserMistake("\n".join(problems))
        return schema

    def digest(self) -> str:
        """SHA-256 of the columns and the loss, in hex: equal where a snapshot's columns fit."""
        given = {**self.to_dict(), "requests": False}
        return hashlib.sha256(json.dumps(given, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def missing(self, column: Column) -> str:
        """Returns what happens to a row in which the column is missing.

        dead_letter, skip, keep (nothing), value (it replaces the missing cell), or skip_head: the same as value, and
        the row is left out if no label is there.
        """
        if column.has_stand_in:
            return "value"
        if column.missing == SKIP_HEAD:
            return SKIP_HEAD if all(each.missing == SKIP_HEAD for _, each in self.labels) else "value"
        if column.missing == KEEP:
            return KEEP
        return SKIP if column.missing == SKIP and not self.requests else "dead_letter"

    def _native_column(self, name: str, column: Column) -> dict[str, Any]:
        path = self.paths.get(name)
        where: dict[str, Any] = {} if path is None else {"path": list(path), "place": place(path)}
        where |= {} if column.around is None else {"from": column.around}
        if not self.is_decoded(name, column):
            return {"name": name, "kind": None, **where}
        kind, missing = column.entry, self.missing(column)
        loss = self.labelled.loss_of(name)
        options = self._kind_options(column, loss)
        if missing in ("value", SKIP_HEAD):
            options["missing_value"] = kind.stand_in(column, loss)
        options |= ({"exact": True} if name in self.exact else {}) | self._pipeline.cell(name)
        blocks = self.labelled.places(name, column)
        return {"name": name, "kind": _stem(kind), "missing": missing, "blocks": blocks, "options": options, **where}

    def _kind_options(self, column: Column, loss: str) -> dict[str, Any]:
        """Returns the options of the native half of a column's kind, with the job's own words for a missing cell."""
        takes_words = self.missing_words and column.entry.has_missing_words(column)
        words = {"missing_words": list(self.missing_words)} if takes_words else {}
        return column.entry.native_options(column, loss) | words

    def _places(self, output: TransformColumn) -> list[str]:
        """The blocks of a made column."""
        if output.feeds is None:
            return self.labelled.places(output.name, output.column)
        return [BLOCKS[output.feeds][0]]

    def _native_output(self, output: TransformColumn) -> dict[str, Any]:
        name, column = output.name, output.column
        if not self.is_used(column):
            return {"name": name, "kind": None, "is_made": True}
        kind, missing = column.entry, self.missing(column)
        loss = self.labelled.loss_of(name)
        options = self._kind_options(column, loss)
        options |= ({"is_bucket": True} if output.is_bucket else {}) | ({} if output.feeds is None else {"apart": True})
        if missing in ("value", SKIP_HEAD):
            options["missing_value"] = column.missing if output.is_bucket else kind.stand_in(column, loss)
        fields = {"kind": _stem(kind), "missing": missing, "blocks": self._places(output), "options": options}
        return {"name": name, "is_made": True, **fields}


def _stem(kind: Any) -> str:
    return next(stem for stem, each in kinds().items() if each is kind)
