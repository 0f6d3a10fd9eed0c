"""A job's columns compiled for its loss: where each goes in a slot, what engine, decoders and readers need.

The same object in training, in a snapshot's manifest and at prediction. Opens nothing.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from streamtrain import _native
from streamtrain.columns.column import DEFAULT_EMBED, UNITS, Column
from streamtrain.columns.names import expand
from streamtrain.compute import losses
from streamtrain.compute.losses import LabelKind
from streamtrain.errors import UserMistake


@dataclass(frozen=True)
class Schema:
    """Columns in written order, braces expanded, and the loss that says what the label is."""

    columns: tuple[tuple[str, Column], ...]
    loss: str
    requests: bool = False

    @classmethod
    def from_columns(cls, columns: Mapping[str, Column | Mapping[str, Any]], loss: str) -> Schema:
        """Compiles [columns]. Raises UserMistake with every problem, one a line, each beginning with its column."""
        expanded: list[tuple[str, Column]] = []
        problems: list[str] = []
        for pattern, given in columns.items():
            try:
                column = given if isinstance(given, Column) else Column.model_validate(dict(given))
                expanded += [(name, column) for name in expand(pattern)]
            except ValidationError as error:
                problems += [f"columns.{pattern}: {_told(each)}" for each in error.errors()]
            except ValueError as error:
                problems.append(f"columns.{pattern}: {error}")
        schema = cls(tuple(expanded), loss)
        problems += schema.problems() if not problems else []
        if problems:
            raise UserMistake("\n".join(problems))
        return schema

    def problems(self) -> list[str]:
        """What is wrong with the columns together, each beginning with its column; empty if all is well."""
        found: list[str] = []
        if len(self.columns) > _native.MAX_COLUMNS:
            found.append(f"columns: expected at most {_native.MAX_COLUMNS:,}, got {len(self.columns):,}")
        names = [name for name, _ in self.columns]
        found += [f"columns.{name}: given twice" for name, times in Counter(names).items() if times > 1]
        found += [f"columns.{name}: a name must not be empty" for name in names if not name]
        for role in ("label", "weight", "event_time", "key"):
            given = [name for name, column in self.columns if column.role == role]
            if len(given) > 1:
                found.append(f"columns.{given[1]}: only one column can be the {role}, and {given[0]} is")
        if not any(column.role == "feature" for _, column in self.columns):
            found.append("columns: expected at least one feature, got none")
        label = self.column_of("label")
        if label is None:
            found.append('columns: expected one column with role = "label", got none')
        else:
            found += [f"columns.{label[0]}: {problem}" for problem in self._label_problems(label[1])]
        return found

    # what the columns are

    @property
    def numbers(self) -> list[str]:
        return [name for name, column in self.columns if column.is_number]

    @property
    def categories(self) -> list[str]:
        return [name for name, column in self.columns if column.is_category]

    @property
    def label_kind(self) -> LabelKind:
        return losses.label_kind(self.loss)

    @property
    def class_names(self) -> list[str]:
        """The label's class names in order; empty where classes are numbers or there are none."""
        label = self.column_of("label")
        return list(label[1].classes) if label and isinstance(label[1].classes, list) else []

    @property
    def class_count(self) -> int:
        """Classes of the label: 0 for a number, 2 for a binary one."""
        label = self.column_of("label")
        if self.label_kind == "number" or label is None:
            return 0
        classes = label[1].classes
        return 2 if self.label_kind == "binary" else len(classes) if isinstance(classes, list) else classes or 0

    def column_of(self, role: str) -> tuple[str, Column] | None:
        """Name and settings of the one column with this role (label, weight, key, event_time)."""
        return next(((name, column) for name, column in self.columns if column.role == role), None)

    # what others need of them

    def for_requests(self) -> Schema:
        """The same for prediction: label, weight and event time are passed over, and no row is left out in silence
        (`skip` becomes `dead_letter`). The slot is the same."""
        return replace(self, requests=True)

    def block_specs(self) -> list[tuple[str, str, int]]:
        """The slot's blocks, for SlotLayout.make: (name, dtype, width)."""
        specs = [("numbers", "f32", len(self.numbers)), ("categories", "i32", len(self.categories))]
        specs += [("label", losses.label_dtype(self.label_kind), 1), ("weight", "f32", 1)]
        return [spec for spec in specs if spec[2]]

    def engine_inputs(self) -> dict[str, Any]:
        """What the engine needs to know of its input, by the slot's column order."""
        by_name = dict(self.columns)
        inputs: dict[str, Any] = {
            "numbers": len(self.numbers),
            "standardize": [by_name[name].standardized() for name in self.numbers],
            "categories": [
                {"name": name, "buckets": by_name[name].buckets, "embed": by_name[name].embed or DEFAULT_EMBED}
                for name in self.categories
            ],
            "classes": self.class_count,
        }
        label = self.column_of("label")
        if label is not None and label[1].standardize:
            inputs["standardize_label"] = label[1].standardized()
        return inputs

    def native_columns(self) -> list[dict[str, Any]]:
        """The columns as _native.DecodePlan takes them."""
        return [self._native_column(name, column) for name, column in self.columns]

    def short_columns(self) -> list[int]:
        """For requests: which columns an array row without label and weight holds; empty where that changes nothing."""
        kept = [i for i, (_, column) in enumerate(self.columns) if column.role not in ("label", "weight")]
        return kept if self.requests and len(kept) < len(self.columns) else []

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; from_dict gives the same schema back."""
        columns = [{"name": name, **column.settings()} for name, column in self.columns]
        return {"columns": columns, "loss": self.loss, **({"requests": True} if self.requests else {})}

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
            schema = cls(pairs, given["loss"], bool(given.get("requests", False)))
        except (KeyError, TypeError, ValidationError) as error:
            raise UserMistake(
                f"schema: expected columns and a loss as Schema.to_dict gives them, got {error}"
            ) from None
        if problems := schema.problems():
            raise UserMistake("\n".join(problems))
        return schema

    def digest(self) -> str:
        """SHA-256 of the columns and the loss, in hex: equal where a snapshot's columns fit."""
        given = {**self.to_dict(), "requests": False}
        return hashlib.sha256(json.dumps(given, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def _label_problems(self, label: Column) -> list[str]:
        problems = []
        if self.label_kind == "number":
            if label.kind == "category" or label.classes is not None:
                problems.append(f"expected a number for loss {self.loss!r}, got a category or classes")
        elif label.standardize:
            problems.append(f"standardize: only a number can be, and the label of loss {self.loss!r} is a class")
        if self.label_kind == "class" and label.classes is None:
            problems.append(f"classes: expected their names, or how many, for loss {self.loss!r}, got none")
        if self.label_kind == "binary" and label.classes is not None and self._count(label) != 2:
            problems.append(f"classes: expected 2 for loss {self.loss!r}, got {self._count(label)}")
        if not problems and label.missing not in ("dead_letter", "skip"):
            try:
                self._label_value(label, label.missing)
            except ValueError as error:
                problems.append(f"missing: {error}")
        return problems

    @staticmethod
    def _count(label: Column) -> int:
        return len(label.classes) if isinstance(label.classes, list) else label.classes or 0

    def _label_value(self, label: Column, value: bool | int | float | str) -> float:
        """The number a label's value stands for in the slot."""
        if isinstance(label.classes, list) and str(value) in label.classes:
            return label.classes.index(str(value))
        count = {"binary": 2, "class": self._count(label), "number": 0}[self.label_kind]
        if isinstance(value, str) or (count and (value != int(value) or not 0 <= value < count)):
            near = difflib.get_close_matches(str(value), label.classes, 1) if isinstance(label.classes, list) else []
            hint = f"; did you mean {near[0]!r}?" if near else ""
            wanted = f"a class name or an index below {count}" if count else "a number"
            raise ValueError(f'expected "dead_letter", "skip" or {wanted}, got {value!r}{hint}')
        return float(value)

    def _target(self, column: Column) -> str:
        if column.role == "key" or (self.requests and column.role != "feature"):
            return "ignored"
        if column.role == "label":
            return f"label_{self.label_kind}"
        if column.role == "feature":
            return column.kind or "number"
        return column.role

    def _native_column(self, name: str, column: Column) -> dict[str, Any]:
        target = self._target(column)
        native: dict[str, Any] = {"name": name, "target": target, "missing": "dead_letter"}
        if target == "ignored":
            return native
        if column.missing == "skip":
            native["missing"] = "dead_letter" if self.requests else "skip"
        elif column.missing != "dead_letter":
            native["missing"] = "value"
            native["missing_value"] = self._missing_value(target, column)
        if target == "category":
            native["buckets"] = column.buckets
        if target in ("label_class", "label_binary") and column.classes is not None:
            native["class_count"] = self._count(column)
            native["classes"] = list(column.classes) if isinstance(column.classes, list) else []
        if target == "event_time":
            native["unit"] = UNITS[column.unit or "ms"]
        return native

    def _missing_value(self, target: str, column: Column) -> str | float:
        value = column.missing
        if target == "category":
            if isinstance(value, bool):
                return "true" if value else "false"
            return str(int(value)) if isinstance(value, float) else str(value)
        if target.startswith("label_"):
            return self._label_value(column, value)
        if target == "event_time":
            numerator, divisor = UNITS[column.unit or "ms"]
            return float(value) * numerator // divisor
        return float(value)


def _told(error: Any) -> str:
    where = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        near = difflib.get_close_matches(where, list(Column.model_fields), 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"{where}: expected one of {', '.join(Column.model_fields)}, got {where!r}{hint}"
    return f"{where}: {error['msg']}" if where else str(error["msg"])
