"""Statistics of a job's columns in some records: counted as they come, and compared with those of other records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.analysis.collisions import Collisions, Frequent
from streamtrain.analysis.sketches import Array, Distinct, Spread, stability_index
from streamtrain.columns.column import Column
from streamtrain.columns.formats import is_lines, of_columns
from streamtrain.columns.kinds import FEATURE
from streamtrain.columns.kinds.category import MOST_BUCKETS, hash_seed
from streamtrain.columns.kinds.parsed import ONE_TEXT, has_one_text
from streamtrain.columns.kinds.sparse import MOST_BITS
from streamtrain.columns.rejected import RejectedRows
from streamtrain.columns.row_plan import Around, Lists, RowPlan, Rows
from streamtrain.columns.schema import Schema
from streamtrain.columns.transforms.transform import NUMBER, TEXT, TIME
from streamtrain.job import Job
from streamtrain.schemas import bare_format, job_format, with_schema

QUANTILES = [0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99]
BINS = 10
GROUPS = 64  # of categories, by their hash: what drift is seen by
LIST = "list"
_MISSING = "missing:"  # before a column's name: whether its cell is
_NO_NUMBER = np.finfo(np.float32).tiny  # throughout a vector: it is missing
_KEPT = ("path", "from", "parse", "unit", "zone", "hash_bits", "namespaces", "vw_bits")


class Summary:
    """A summary of the columns that the job's decoder reads, as records give them: before any transform."""

    def __init__(self, job: Job) -> None:
        job = with_schema(job)
        self._schema, self._cell_types = _raw_columns(job)
        bits = _format_bits(job)
        wide = {} if bits is None else {"bits": MOST_BITS}
        self._plan = RowPlan(self._schema, {**job_format(job), **wide}, {**bare_format(job), **wide})
        self.bare = self._plan.bare  # format of records that never meet a registry
        self.rows = self.unusable = 0
        buckets = {name: _buckets(job.schema, name, column, bits) for name, column in job.schema.columns}
        by_bits = {name for name, column in job.schema.columns if getattr(column, "vw_bits", None) is not None}
        self.columns = {
            name: ColumnSummary(holds, buckets.get(name), name in by_bits) for name, holds in self._cell_types.items()
        }
        self._missing_words = {
            name: _hash(name, column, "") for name, column in self._schema.columns if self._cell_types.get(name) == TEXT
        }
        self._stand_ins = {
            name: _hash(name, column, str(column.entry.stand_in(column, job.schema.loss)))
            for name, column in job.schema.columns
            if buckets[name] is not None and column.has_stand_in and self._cell_types[name] == TEXT
        }  # fmt: skip

    def add(self, records: Iterable[bytes | tuple[bytes, Around]], bare: bool = False) -> Iterator[int]:
        """Takes records; the rows so far, again and again."""
        for batch in self._plan.batches(records, bare=bare, copy=False):
            self._take(batch)
            yield self.rows

    def _take(self, batch: Rows) -> None:
        self.rows += batch.count
        for each in batch.left_out:
            self._leave_out(each.path, each.row_to - each.row_from)
        for name, column in self.columns.items():
            cells = batch.get(name)
            if isinstance(cells, Lists):
                column.add_lists(cells)
                continue
            column.rows += batch.count
            if name in self._missing_words:
                assert cells is not None
                column.add(cells[cells != self._missing_words[name]])
                continue
            there = np.ones(batch.count, bool)
            if _MISSING + name in batch:
                there = np.asarray(batch[_MISSING + name]) == 0
            elif cells is not None and cells.ndim > 1:
                there = (cells != _NO_NUMBER).any(axis=1)
            if cells is None:  # a time: how many there are
                column.there += int(there.sum())
            else:
                column.add(cells[there])

    def add_rejected(self, rejected: RejectedRows) -> None:
        """Rows of a file that no record can hold."""
        for each in rejected:
            self._leave_out(each.path, 1)
        self.unusable += rejected.rows - len(rejected)

    def _leave_out(self, path: str, rows: int) -> None:
        self.unusable += rows
        name = next((name for name in self.columns if is_at(path, self._schema, name)), None)
        if name is not None:
            self.columns[name].unusable += rows

    def document(self, against: Summary | None = None) -> dict[str, Any]:
        """Returns the summary as JSON can hold it. `against`: the summary that drift is measured from."""
        columns = {
            name: column.document(None if against is None else against.columns.get(name), self._stand_ins.get(name))
            for name, column in self.columns.items()
        }
        return {"rows": self.rows + self.unusable, "unusable_rows": self.unusable, "columns": columns}


class ColumnSummary:
    """The summary of a column of numbers, texts, times or lists. `buckets`: how many its hashes have, if any;
    `by_bits`: as many as Vowpal Wabbit's hash has of so many bits."""

    def __init__(self, holds: str, buckets: int | None = None, by_bits: bool = False) -> None:
        self.holds, self.buckets, self.by_bits = holds, buckets, by_bits
        self.rows = self.there = self.unusable = 0
        self.entries = 0  # of lists and texts
        self.distinct, self.spread = Distinct(), Spread()
        self.groups = np.zeros(GROUPS, np.int64)
        self.hashes = Frequent()

    def add(self, cells: Array) -> None:
        """Adds cells that are not missing, of rows that are counted elsewhere."""
        self.there += len(cells)
        flat = cells.reshape(-1)
        self.distinct.add(flat)
        if self.holds == NUMBER:
            self.spread.add(flat)
        elif len(flat):
            self.groups += np.bincount(flat % GROUPS, minlength=GROUPS)
            if self.buckets is not None:
                self.hashes.add(flat)

    def add_lists(self, cells: Lists) -> None:
        """The entries; of quantiles, how many a row has."""
        sizes = np.diff(cells.offsets)
        self.rows += len(sizes)
        self.there += int((sizes > 0).sum())
        self.entries += len(cells.values)
        if self.buckets is not None:
            self.hashes.add(cells.values.astype(np.int64))
        self.distinct.add(cells.values)
        self.spread.add(sizes)
        self.groups += np.bincount(cells.values % GROUPS, minlength=GROUPS)

    def document(self, against: ColumnSummary | None, stand_in: int | None = None) -> dict[str, Any]:
        """`stand_in`: the hash of what stands in for a missing cell."""
        document: dict[str, Any] = {
            "holds": self.holds, "rows": self.rows + self.unusable, "missing": self.rows - self.there,
            "unusable": self.unusable,
        }  # fmt: skip
        if self.holds != TIME:
            document |= {"distinct": self.distinct.count, "distinct_is_exact": self.distinct.is_exact}
        if self.spread.count:
            spread = self.spread
            edges = np.linspace(spread.least, spread.largest, BINS + 1)[1:-1]
            quantiles = spread.quantiles(QUANTILES)
            document |= {
                "mean": spread.mean, "deviation": spread.deviation, "least": spread.least, "largest": spread.largest,
                "quantiles": {f"{share:g}": value for share, value in zip(QUANTILES, quantiles, strict=True)},
                "histogram": {"edges": edges.tolist(), "rows": spread.histogram(edges).tolist()},
            }  # fmt: skip
        if self.buckets is not None:
            document["collisions"] = self._collisions(self.buckets, stand_in)._asdict()
        if against is not None and self.holds != TIME:
            document["drift"] = self.drift(against)
        return document

    def _collisions(self, buckets: int, stand_in: int | None) -> Collisions:
        if self.holds == LIST:
            return Collisions.of(self.hashes, self.entries, buckets, "entries", self.by_bits)
        missing = 0 if stand_in is None else self.rows - self.there
        if missing:
            whole = Frequent()
            for hashes, counts in (self.hashes.frequent(0), (np.array([stand_in]), np.array([missing]))):
                whole.add(hashes, counts)
            return Collisions.of(whole, self.there + missing, buckets)
        return Collisions.of(self.hashes, self.there, buckets)

    def drift(self, against: ColumnSummary) -> float:
        """The stability index: over the other's tenths of a number, over groups of categories; missing is a bin too."""
        if self.holds == NUMBER:
            edges = np.unique(against.spread.quantiles([share / BINS for share in range(1, BINS)]))
            pair = [each.spread.histogram(edges) for each in (against, self)]
        else:
            pair = [against.groups, self.groups]
        one, other = ([*each, of.rows - of.there] for each, of in zip(pair, (against, self), strict=True))
        return stability_index(np.array(one), np.array(other))


def _raw_columns(job: Job) -> tuple[Schema, dict[str, str]]:
    """The job's columns as they come, and what each holds. Where a record's parts are known by their roles, those of
    labels and weights stay what they are."""
    by_role = is_lines(job.records.named)
    columns: list[tuple[str, Column]] = []
    holds: dict[str, str] = {}
    transforms: list[tuple[str, dict[str, Any]]] = []
    for name, column in job.schema.columns:
        raw_column = None if by_role and column.role != FEATURE else _raw_column(job.schema, name, column)
        if raw_column is None:
            columns.append((name, column))
            continue
        wide = {"buckets": 1 << MOST_BITS} if _has_pairs(column) and _format_bits(job) is not None else {}
        columns.append((name, Column.model_validate({**raw_column[1], **wide})))
        holds[name] = raw_column[0]
        if raw_column[0] != TEXT and raw_column[0] != LIST and raw_column[1].get("kind") != "vector":
            transforms.append((_MISSING + name, {"is_missing": name}))
    words = job.schema.missing_words
    return _WideNames(tuple(columns), "mean_squared_error", transforms=tuple(transforms), missing_words=words), holds


def _raw_column(schema: Schema, name: str, column: Column) -> tuple[str, dict[str, Any]] | None:
    """None of what is not looked at."""
    if not schema.is_decoded(name, column):
        return None
    kept = {key: value for key, value in column.settings().items() if key in _KEPT}
    form = column.entry.cells(column)
    if form == "pairs":
        entries = {"buckets": column.buckets, "most": column.most_entries, "cut": True}
        return LIST, {**kept, **entries, "kind": "sparse", "missing": 0}
    if form == "list" and column.buckets is not None:
        listed = {"list": True, "most": column.most_entries, "cut": True}
        return LIST, {**kept, "kind": "category", "buckets": _multiple(column.buckets), "missing": "", **listed}
    if form == "list" and column.size is not None:
        return NUMBER, {**kept, "kind": "vector", "size": column.size, "missing": float(_NO_NUMBER)}
    if column.entry.time_unit(column) is not None:
        return TIME, {**kept, "kind": "time"}
    if column.kind == "text":
        parts = {key: value for key, value in column.settings().items() if key in ("ngrams", "by", "lower_case")}
        entries = {"buckets": _multiple(column.buckets), "most": column.most_entries, "cut": True}
        return LIST, {**kept, **parts, "kind": "text", "missing": "", **entries}
    if column.entry.is_text(column) or column.entry.takes_names(column) or kept.get("parse") in ONE_TEXT:
        if not has_one_text(kept.get("parse")):
            kept.pop("parse", None)
        return TEXT, {**kept, "kind": "category", "vocabulary": {"capacity": 1}, "missing": ""}  # its whole hash
    if form != "value" or not column.entry.is_numeric(column):
        return None
    return NUMBER, {**kept, "missing": 0}


class _WideNames(Schema):
    """A schema whose sparse columns spread a name's hash over a multiple of the buckets; an index keeps its bounds."""

    def _native_column(self, name: str, column: Column) -> dict[str, Any]:
        found = super()._native_column(name, column)
        if "options" in found and _has_pairs(column):
            found["options"]["spread"] = _multiple(column.buckets) // column.buckets
        return found


def _has_pairs(column: Column) -> bool:
    return column.entry.cells(column) == "pairs"


def _buckets(schema: Schema, name: str, column: Column, format_bits: int | None) -> int | None:
    """The buckets of a category, a list of some, a text or pairs; None of any other column."""
    is_hashed = column.role == FEATURE and (column.entry.is_text(column) or _has_pairs(column))
    if not is_hashed or not schema.is_decoded(name, column):
        return None
    return column.buckets if format_bits is None or not _has_pairs(column) else 1 << format_bits


def _format_bits(job: Job) -> int | None:
    """The bits of indexes where the records' format hashes names itself, as Vowpal Wabbit's text does."""
    bits: int | None = of_columns(job.records.named).get("vw_bits")
    return bits


def _multiple(buckets: int) -> int:
    """So many times the buckets that hardly two entries share one, and that a remainder gives the job's own."""
    return buckets * (MOST_BUCKETS // buckets)


def _hash(name: str, column: Column, text: str) -> int:
    """The hash of a text of that column, as an int64."""
    found = _native.murmur3(text.encode(), hash_seed(name), column.hash_bits)
    return found - (1 << 64) if found >> 63 else found


def is_at(path: str, schema: Schema, name: str) -> bool:
    """Returns whether a dead row's path leads to the column `name`."""
    place = schema.paths.get(name)
    key = name if place is None else str(place[0])
    return path == f"$.{key}" or path.startswith((f"$.{key}.", f"$.{key}[")) or path.endswith(f"].{key}")
