"""Tables of the blocks of a snapshot, beside another's: every number that the charts of the model's page draw."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from streamtrain.ui import html, telling
from streamtrain.ui.block_figures import SPREAD, BlockFigures, Change
from streamtrain.ui.examined import Examined, Snapshots
from streamtrain.ui.model_drawing import before, block_names

_HEAD = ("block", "shape", "norm", "mean magnitude", "deviation", "least", "largest", "update : parameter", "optimizer")
_OF_TABLES = ("table", "rows x width", "touched", "changed", *(f"row norm, {share:.0%}" for share in SPREAD))


def tables(snapshots: Snapshots, found: Examined, against: int | None, first: int) -> list[html.Html]:
    """Returns tables of the drawn blocks. Changes are from `against`; without it, from the version examined before."""
    beside = None if against is None else snapshots.of(against)
    other = before(snapshots, found) if against is None else beside
    changes: Mapping[str, Change] = {}
    title = f"Blocks of version {found.version}, after {telling.count(found.updates)} updates of a worker"
    if other is not None:
        changes = snapshots.change(*sorted((other.version, found.version)))
        title += f"; update : parameter of one, log10, from version {other.version}: if all go one way, if each its own"
    names = block_names(found, first)
    parts = [html.table(_HEAD, [_row(found.blocks[name], changes.get(name)) for name in names], title)]
    if beside is not None:
        rows = [_row(beside.blocks[name], None) for name in names if name in beside.blocks]
        parts.append(html.table(_HEAD, rows, f"The same blocks in version {beside.version}"))
    return [*parts, *_embedded(found, other, changes)]


def _embedded(found: Examined, other: Examined | None, changes: Mapping[str, Change]) -> Sequence[html.Html]:
    rows = [_table_row(each, changes.get(name)) for name, each in found.blocks.items() if each.row_norms]
    if not rows:
        return []
    title = f"Embedding tables of version {found.version}; touched: rows that had a gradient"
    title += f"; changed: rows that differ from version {other.version}" if other is not None else ""
    return [html.table(_OF_TABLES, rows, title)]


def _row(figures: BlockFigures, change: Change | None) -> list[object]:
    about = "~" if figures.sampled else ""
    shape = _shape(figures) + (f", {figures.sampled:,} rows looked at" if figures.sampled else "")
    numbers = (figures.magnitude, figures.deviation, figures.least, figures.largest)
    ratio = telling.NONE if change is None else f"{_log10(change.least)} to {_log10(change.most)}"
    kept = ", ".join(f"{name} {value:.3g}" for name, value in figures.optimizer.items())
    cells = [figures.name, shape, f"{about}{figures.norm:.4g}", *(f"{each:.4g}" for each in numbers)]
    return [*cells, ratio, kept or telling.NONE]


def _table_row(figures: BlockFigures, change: Change | None) -> list[object]:
    about = "~" if figures.sampled else ""
    touched = "not told by its optimizer" if figures.touched is None else f"{about}{figures.touched:.1%}"
    changed = telling.NONE if change is None else f"{about}{change.changed:.1%}"
    return [figures.name, _shape(figures), touched, changed, *(f"{norm:.4g}" for norm in figures.row_norms)]


def _shape(figures: BlockFigures) -> str:
    return " x ".join(f"{size:,}" for size in figures.shape)


def _log10(value: float) -> str:
    return f"{math.log10(value):.1f}" if 0 < value < math.inf else telling.NONE
