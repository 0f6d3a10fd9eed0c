"""Streams a first job is judged by: real ones where the data is at hand, and made ones that each have one difficulty.

The real ones lie in the folder that STREAMTRAIN_DATA names, or in ../shared/data beside the checkout.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(os.environ.get("STREAMTRAIN_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
Table = tuple[list[str], Iterator[list[Any]]]


@dataclass(frozen=True, eq=False)
class Stream:
    """A table in its order; `bars`: the most that ours may be of each rival's figure, `most` that it may be at all."""

    name: str
    label: str
    table: Callable[[], Table | None]  # None where the data is absent
    bars: dict[str, float]
    most: float | None = None

    def write(self, folder: Path) -> Path | None:
        """The stream as a CSV file; None where its data is absent."""
        table = self.table()
        if table is None:
            return None
        path = folder / f"{self.name}.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(table[0])
            writer.writerows(table[1])
        return path


def _file(path: str) -> Callable[[], Table | None]:
    """The first row names the columns."""
    found = DATA / path

    def table() -> Table | None:
        rows = csv.reader(found.read_text().splitlines()) if found.is_file() else None
        return None if rows is None else (next(rows), rows)

    return table


def _nsl_kdd() -> Table | None:
    """A file without a header: the attack's name becomes 0 or 1, the last column (difficulty) is left out."""
    found = _file("nsl_kdd/KDDTrain+_20Percent.txt")()
    rows = [] if found is None else [found[0], *found[1]]
    header = [f"c{at:02}" for at in range(1, 42)] + ["attack"]
    return (header, ([*row[:41], int(row[41] != "normal")] for row in rows)) if rows else None


def _flights() -> Table | None:
    from streamtrain.demo.flights import FEATURES, data_file, load_flights
    from streamtrain.errors import UserMistake

    try:
        data_file()
    except UserMistake:
        return None
    columns = load_flights()
    names = [*FEATURES, "late"]

    def cells(name: str) -> list[Any]:
        array = columns[name]
        if array.dtype.kind == "f":
            return ["" if value != value else int(value) for value in array.tolist()]
        return array.tolist()

    return names, map(list, zip(*(cells(name) for name in names), strict=True))


def _of_packages(package: str, name: str) -> Callable[[], Table | None]:
    """A data set that scikit-learn or River carries; absent without the package."""

    def table() -> Table | None:
        if find_spec(package) is None:
            return None
        if package == "sklearn":
            data = getattr(import_module("sklearn.datasets"), f"load_{name}")()
            rows = zip(data.data.tolist(), data.target.tolist(), strict=True)
            return [*data.feature_names, "target"], ([*row, label] for row, label in rows)
        data = getattr(import_module("river.datasets"), name)()
        columns = list(next(iter(data))[0])
        return [*columns, "target"], ([*(x[column] for column in columns), y] for x, y in data)

    return table


def _synthetic_table(rows: int, columns: Callable[[np.random.Generator, int], dict[str, Any]]) -> Callable[[], Table]:
    """A table of columns cells from a fixed seed."""

    def table() -> Table:
        cells = columns(np.random.default_rng(5), rows)
        return list(cells), map(list, zip(*(np.asarray(column).tolist() for column in cells.values()), strict=True))

    return table


def _binary(random: np.random.Generator, logit: Any) -> Any:
    return (random.random(len(logit)) < 1 / (1 + np.exp(-logit))).astype(int)


def _mushroom(random: np.random.Generator, n: int) -> dict[str, Any]:
    """22 texts of few values, of which three together decide."""
    columns = {f"c{at:02}": random.integers(0, 2 + at % 8, n) for at in range(22)}
    label = (columns["c05"] >= 3) | ((columns["c09"] == 1) & (columns["c14"] >= 4))
    return {name: [f"v{value}" for value in column] for name, column in columns.items()} | {"edible": label.astype(int)}


def _heavy(random: np.random.Generator, n: int) -> dict[str, Any]:
    """Log-normal and Cauchy numbers; the label follows their ranks."""
    z = random.normal(size=(n, 6))
    columns = {f"amount{at}": np.exp(2.5 * z[:, at]).round(4) for at in range(4)}
    columns |= {f"ratio{at}": np.tan(np.pi * (0.5 - random.random(n))).round(4) for at in range(2)}
    signal = 2 * z[:, 0] - 1.5 * z[:, 1] + np.clip(columns["ratio0"], -2, 2)
    return columns | {"late": _binary(random, signal)}


def _indicator(random: np.random.Generator, n: int) -> dict[str, Any]:
    """A flag that is set in 1 % of the rows and then decides, among numbers that say little."""
    x, flag = random.normal(size=(n, 4)).round(4), (random.random(n) < 0.01).astype(int)
    return {f"x{at}": x[:, at] for at in range(4)} | {"flag": flag, "late": _binary(random, x[:, 0] - 1 + 8 * flag)}


def _rare(random: np.random.Generator, n: int) -> dict[str, Any]:
    """One row in a thousand is positive."""
    x = random.normal(size=(n, 8)).round(4)
    return {f"x{at}": x[:, at] for at in range(8)} | {"fraud": _binary(random, 1.5 * x[:, 0] - x[:, 1] - 8.3)}


def _noise(random: np.random.Generator, n: int) -> dict[str, Any]:
    """60 numbers that say nothing, beside two that say little."""
    x = random.normal(size=(n, 62)).round(4)
    return {f"x{at:02}": x[:, at] for at in range(62)} | {"late": _binary(random, 0.7 * x[:, 3] - 0.5 * x[:, 40])}


def _drift(random: np.random.Generator, n: int) -> dict[str, Any]:
    """Means that move by twenty deviations, and a boundary that turns."""
    x, time = random.normal(size=(n, 5)), np.linspace(0, 1, n)
    logit = 2 * x[:, 0] * np.cos(3 * time) + 2 * x[:, 1] * np.sin(3 * time)
    moved = x + 20 * time[:, None] * np.array([1, 0, -1, 2, 0])
    return {f"x{at}": moved[:, at].round(4) for at in range(5)} | {"late": _binary(random, logit)}


def _outlier(random: np.random.Generator, n: int) -> dict[str, Any]:
    """Plain numbers, but for one cell of 1e12 early on."""
    x = random.normal(3, 2, size=(n, 6)).round(4)
    label = _binary(random, 1.5 * (x[:, 0] - 3) - (x[:, 1] - 3))
    x[40, 0] = 1e12
    return {f"x{at}": x[:, at] for at in range(6)} | {"late": label}


def _tiny(random: np.random.Generator, n: int) -> dict[str, Any]:
    """Few rows, numbers and texts."""
    x, kind = random.normal(size=(n, 5)).round(3), random.integers(0, 4, n)
    label = _binary(random, 1.5 * x[:, 0] - x[:, 2] + (kind == 2))
    return {f"x{at}": x[:, at] for at in range(5)} | {"kind": [f"k{value}" for value in kind], "late": label}


def _close(random: np.random.Generator, n: int, classes: int) -> tuple[dict[str, Any], Any]:
    """Ten numbers around the centre of one of the classes, which lie close; and the class."""
    centres, kind = random.normal(size=(classes, 10)), random.integers(0, classes, n)
    x = (centres[kind] + random.normal(size=(n, 10))).round(4)
    return {f"x{at}": x[:, at] for at in range(10)}, kind


def _classes(random: np.random.Generator, n: int) -> dict[str, Any]:
    """Seven classes by text."""
    x, kind = _close(random, n, 7)
    return x | {"kind": [f"kind {value}" for value in kind]}


def _scales(random: np.random.Generator, n: int) -> dict[str, Any]:
    """A number to predict from columns of very different sizes; its own mean rises fivefold."""
    x, time = random.normal(size=(n, 5)), np.linspace(0, 1, n)
    y = 100 + 400 * time + 30 * x[:, 0] + 20 * np.tanh(2 * x[:, 1]) + random.normal(0, 10, n)
    sizes = np.array([1e-3, 1, 1e3, 1e6, 1])
    return {f"x{at}": x[:, at] * sizes[at] for at in range(5)} | {"step": np.arange(n), "load": y.round(3)}


def _forty(random: np.random.Generator, n: int) -> dict[str, Any]:
    """Forty classes as whole numbers."""
    x, kind = _close(random, n, 40)
    return x | {"kind": kind + 1}


def _ratings(random: np.random.Generator, n: int) -> dict[str, Any]:
    """MovieLens' shape: ids of users and films as whole numbers, and a rating that both decide."""
    users, films = random.integers(1, 611, n), random.integers(1, 3_000, n)
    of_user, of_film = random.normal(0, 0.5, 611), random.normal(0, 0.7, 3_000)
    rating = 3.5 + of_user[users] + of_film[films] + random.normal(0, 0.4, n)
    when = 964_980_000 + np.sort(random.integers(0, 10**8, n))
    return {
        "userId": users, "movieId": films, "rating": (rating * 2).round().clip(1, 10) / 2, "timestamp": when,
    }  # fmt: skip


ELEC2 = "elec2/elec.csv"
PYTORCH = {"PyTorch": 1.03}
ALL = {"PyTorch, best batch": 1.03, "River": 1.03, "Vowpal Wabbit": 1.03}
STREAMS = (
    Stream("adult", "income", _file("adult/adult.csv"), PYTORCH | {"River": 1.03}),
    Stream("nsl_kdd", "attack", _nsl_kdd, PYTORCH | {"River": 1.03}),
    Stream("elec2", "class", _file(ELEC2), PYTORCH | {"River": 1.12}),
    Stream("elec2_price", "nswprice", _file(ELEC2), {"PyTorch": 1.05}),
    Stream("flights", "late", _flights, {}, most=0.280),
    Stream("mushroom", "edible", _synthetic_table(8_000, _mushroom), PYTORCH),
    Stream("heavy", "late", _synthetic_table(20_000, _heavy), PYTORCH),
    Stream("indicator", "late", _synthetic_table(20_000, _indicator), PYTORCH),
    Stream("rare", "fraud", _synthetic_table(50_000, _rare), PYTORCH),
    Stream("noise", "late", _synthetic_table(20_000, _noise), PYTORCH),
    Stream("drift", "late", _synthetic_table(20_000, _drift), PYTORCH),
    Stream("outlier", "late", _synthetic_table(20_000, _outlier), PYTORCH),
    Stream("tiny", "late", _synthetic_table(500, _tiny), PYTORCH),
    Stream("classes", "kind", _synthetic_table(20_000, _classes), PYTORCH),
    Stream("scales", "load", _synthetic_table(20_000, _scales), {"PyTorch": 1.05}),
    Stream("forty", "kind", _synthetic_table(20_000, _forty), PYTORCH),
    Stream("ratings", "rating", _synthetic_table(20_000, _ratings), ALL),
    Stream("bananas", "target", _of_packages("river", "Bananas"), ALL),
    Stream("trump_approval", "target", _of_packages("river", "TrumpApproval"), ALL),
    Stream("breast_cancer", "target", _of_packages("sklearn", "breast_cancer"), ALL),
)
