"""The tables of docs/ that tell of registries: every entry is there, with its settings and defaults, and no other."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from streamtrain.compute import layers, losses, minimizers, ops, optimizers, schedules, vertices
from streamtrain.compute.metrics import CONSTANT
from streamtrain.compute.model import Model
from streamtrain.compute.options import Option
from streamtrain.job import Job
from tests.docs.page import ROOT

MODEL, FIT = ROOT / "docs" / "model.md", ROOT / "docs" / "fit.md"
SPAN = re.compile(r"`([^`]+)`(?: \(((?:`[^`]+`(?:, )?)+)\))?")  # an entry, and its settings in parentheses
Settings = dict[str, Any]  # with the default that is told, or ...


def tables(page: Path) -> Iterator[list[list[str]]]:
    """Their rows' cells, those of the head first."""
    for table in re.findall(r"(?:^\|.*\|\n)+", page.read_text("utf-8"), re.MULTILINE):
        head, _, *rows = table.splitlines()
        yield [[cell.strip() for cell in line.strip("|").split(" | ")] for line in (head, *rows)]


def table(page: Path, first: str) -> list[dict[str, str]]:
    """The rows of the table whose first column is called that, by column."""
    (found,) = [cells for cells in tables(page) if cells[0][0].strip() == first]
    return [dict(zip(found[0], row, strict=True)) for row in found[1:]]


def told(page: Path, first: str) -> dict[str, Settings]:
    """The settings of each entry: `{ entry = 1, setting = 2 }`, or `entry` (`setting`, `setting = 3`), or all in a
    column of settings."""
    found: dict[str, Settings] = {}
    for row in table(page, first):
        for span, more in SPAN.findall(row[first]):
            if span.startswith("{"):
                name, *settings = re.findall(r"(\w+) = ", span)
                found[name] = dict.fromkeys(settings, ...)
                continue
            settings = re.findall(r"`([^`]+)`", f"{more} {row.get('settings', '')}")
            found[span.strip('"')] = dict(map(_setting, settings))
    return found


def _setting(text: str) -> tuple[str, Any]:
    name, _, default = text.partition("=")
    return name.strip(), tomllib.loads(f"x = {default}")["x"] if default else ...


def check(found: Mapping[str, Settings], known: Mapping[str, Mapping[str, Option]]) -> None:
    assert sorted(found) == sorted(known)
    for name, settings in found.items():
        assert sorted(settings) == sorted(known[name]), name
        defaults = {setting: default for setting, default in settings.items() if default is not ...}
        assert defaults == {setting: known[name][setting].default for setting in defaults}, name


def without_own(name: str) -> Mapping[str, Option]:
    """The settings of a layer but for the one that names it."""
    return {key: option for key, option in layers.options(name).items() if key != name}


@pytest.mark.parametrize(
    ("page", "first", "registry", "options"),
    [
        (MODEL, "layer", layers, without_own),
        (MODEL, "vertex", vertices, vertices.options),
        (MODEL, "loss", losses, losses.options),
        (MODEL, "optimizer", optimizers, optimizers.own_options),
        (MODEL, "schedule", schedules, schedules.own_options),
        (FIT, "`optimizer=`", minimizers, lambda name: minimizers.get(name).OPTIONS),
    ],
)
def test_a_table_has_the_entries_of_a_registry(page: Path, first: str, registry: Any, options: Any) -> None:
    check(told(page, first), {name: options(name) for name in registry.names()})


def test_what_optimizers_share() -> None:
    shared = [name for row in table(MODEL, "setting") for name in re.findall(r"`(\w+)`", row["setting"])]
    assert sorted(shared) == sorted(optimizers.COMMON)
    for row in table(MODEL, "optimizer"):
        names = [span for span, _ in SPAN.findall(row["optimizer"])]
        assert {optimizers.get(name).RATE for name in names} == {float(row["usual rate"])}, names


def test_activations() -> None:
    _, _, rest = MODEL.read_text("utf-8").partition("\nWhat a layer takes as `activation`, ")
    sentence = rest.partition(" is any of ")[2].partition(";")[0]
    assert sorted(re.findall(r"`(\w+)`", sentence)) == sorted(ops.activations())


def figures() -> set[str]:
    """All that models of any loss are judged by: of few classes other ones than of many."""
    found = set[str]()
    for loss in losses.names():
        for classes in (3, 101) if losses.label_kind(loss) == "class" else (None,):
            label = {"role": "label"} | ({} if classes is None else {"classes": classes})
            job = Job.from_tables({"columns": {"x": {}, "y": label}, "model": {"loss": loss}})
            found |= set(Model(job.model_spec()).figures)
    return found


def test_figures() -> None:
    known = figures()
    assert sorted(told(MODEL, "figure")) == sorted(name for name in known if not name.startswith(CONSTANT))
    of_the_constant = set(re.findall(rf"`({CONSTANT}\w+)`", MODEL.read_text("utf-8")))
    assert of_the_constant == {name for name in known if name.startswith(CONSTANT)}


@pytest.mark.parametrize(
    ("found", "known"),
    [
        ({"sgd": {"momentum": 0.1}}, {"sgd": {"momentum": optimizers.own_options("sgd")["momentum"]}}),
        ({"sgd": {}}, {"sgd": {"momentum": optimizers.own_options("sgd")["momentum"]}}),
        ({"sgd": {"mass": ...}}, {"sgd": {}}),
        ({"sgd": {}, "gone": {}}, {"sgd": {}}),
        ({}, {"sgd": {}}),
    ],
)
def test_what_differs_is_seen(found: Any, known: Any) -> None:
    with pytest.raises(AssertionError):
        check(found, known)
