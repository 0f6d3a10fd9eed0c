"""The model spec, a plain dict that goes into the manifest, checked and made into typed parts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from streamtrain import _native
from streamtrain.compute import averagings, initializers, layers, losses, optimizers, schedules, stateful
from streamtrain.compute.graph import Graph
from streamtrain.compute.heads import Head, wrong_of
from streamtrain.compute.input import MAX, POOLS, VECTORS, Bag, Category, InputShape, Pixels, Standardize, Vector
from streamtrain.compute.module_spec import ModuleSpec
from streamtrain.compute.network import given_beside
from streamtrain.compute.options import Problem
from streamtrain.compute.stateful.transform import StatefulSpec
from streamtrain.compute.stateful_inputs import feeds, settings_problems, stateful_spec
from streamtrain.errors import UserMistake

MAX_WIDTH = _native.MAX_COLUMNS   # of a matrix; a spec from a manifest must not ask for any amount of memory
MAX_BUCKETS = 1 << 28
MAX_ENTRIES = 1 << 20   # of a bag in one row


@dataclass(frozen=True)
class LayerSpec:
    kind: str
    options: dict[str, Any]   # as build() takes them


@dataclass(frozen=True)
class ModelSpec:
    """The specification of a model. `from_dict` raises UserMistake naming the place in the dict."""

    input: InputShape
    layers: tuple[LayerSpec, ...]
    heads: tuple[Head, ...]   # one that has no name, or several
    optimizer: str
    optimizer_settings: dict[str, Any]
    average_optimizer_state: bool
    averaging: str
    averaging_settings: dict[str, Any]
    module: ModuleSpec | None = None   # in the place of the layers and the output layer
    graph: Graph | None = None   # in the place of the layers
    schedule: tuple[str, dict[str, Any]] | None = None   # one that keeps something in the state, and its settings

    @staticmethod
    def from_dict(spec: Mapping[str, Any]) -> ModelSpec:
        """Reads {"input": {"numbers", "standardize", "categories", "classes", "standardize_label", "vectors", "bags",
        "held", "pixels", "labels"}, "layers", "graph", "torch", "loss", "heads", "optimizer",
        "average_optimizer_state", "averaging", "schedule"}; other keys are left alone."""
        for name, expected in given_beside([key for key, found in spec.items() if found]):
            raise _wrong(name, expected, spec[name])
        optimizer, options = _optimizer(spec)
        shape = input_shape(spec)
        given = spec.get("layers", [])
        if not isinstance(given, Sequence) or isinstance(given, str):
            raise _wrong("layers", "a list of layers", given)
        parts = tuple(_layer(layer, f"layers[{at}]") for at, layer in enumerate(given))
        module = None if spec.get("torch") is None else ModuleSpec.from_dict(spec["torch"])
        graph = None if spec.get("graph") is None else Graph.of_dict(spec["graph"])
        if module is not None and optimizers.by_group(optimizer, options)["weight"]["max_norm"]:
            raise _wrong("optimizer.max_norm", "0 for a PyTorch module, whose outputs' weights are its own affair",
                         options["max_norm"])
        average = bool(spec.get("average_optimizer_state", True))
        heads = _heads(spec, shape, graph)
        return ModelSpec(
            shape, parts, heads, optimizer, options, average, *_averaging(spec), module, graph, _schedule(spec)
        )

    @property
    def loss(self) -> str:
        """Returns the loss of a model of one head; "" for several heads."""
        return "" if self.heads[0].name else self.heads[0].loss


def _wrong(where: str, expected: str, got: object) -> UserMistake:
    return UserMistake(f"model.{where}: expected {expected}, got {got!r:.200}")


def _text(spec: Mapping[str, Any], key: str, where: str = "") -> str:
    found = spec.get(key)
    if not isinstance(found, str):
        raise _wrong(where or key, "a name", found)
    return found


def _whole(found: object, where: str, least: int, most: int) -> int:
    if not isinstance(found, int) or isinstance(found, bool) or not least <= found <= most:
        raise _wrong(where, f"a whole number from {least} to {most}", found)
    return found


def input_shape(spec: Mapping[str, Any]) -> InputShape:
    """Reads the input shape from a model spec's "input". UserMistake names the place in it."""
    given = spec.get("input")
    if not isinstance(given, Mapping):
        raise _wrong("input", "a table with numbers, standardize, categories and classes", given)
    numbers = _whole(given.get("numbers", 0), "input.numbers", 0, MAX_WIDTH)
    flags = given.get("standardize", [False] * numbers)
    standardize = tuple(_standardize(flag, f"input.standardize[{at}]") for at, flag in enumerate(flags))
    if len(standardize) != numbers:
        raise _wrong("input.standardize", f"{numbers} flags, one per number", len(standardize))
    tables = enumerate(given.get("categories", []))
    categories = tuple(_category(each, f"input.categories[{at}]") for at, each in tables)
    classes = _whole(given.get("classes", 0) or 0, "input.classes", 0, _native.MAX_CLASSES)
    label = _standardize(given.get("standardize_label", False), "input.standardize_label")
    vectors = tuple(_vector(each, f"input.vectors[{at}]") for at, each in enumerate(given.get("vectors", [])))
    bags = tuple(_bag(each, f"input.bags[{at}]") for at, each in enumerate(given.get("bags", [])))
    specs = tuple(_stateful_spec(each, f"input.held[{at}]") for at, each in enumerate(given.get("held", [])))
    pixels = tuple(_pixels(each, f"input.pixels[{at}]") for at, each in enumerate(given.get("pixels", [])))
    shape = InputShape(numbers, standardize, categories, classes, label, vectors, bags, specs, pixels)
    if not (0 if shape.linear else 1) <= shape.width <= MAX_WIDTH:
        raise _wrong("input", f"1 to {MAX_WIDTH} columns with their embeddings", shape.width)
    names = [*(each.name for each in categories), *(each.name for each in bags), *(each.name for each in specs)]
    if len(set(names)) != len(names):
        where = "held" if specs else "bags" if bags else "categories"
        raise _wrong(f"input.{where}", "names that differ", names)
    return shape


def _standardize(given: object, where: str) -> Standardize | None:
    """True: as is usual; a table: with these settings."""
    if not isinstance(given, Mapping):
        return Standardize() if given else None
    settings = {**given}
    for key, found in settings.items():
        if key not in (field.name for field in fields(Standardize)):
            raise _wrong(f"{where}.{key}", "clip, half_life or floor", key)
        if not isinstance(found, int | float) or isinstance(found, bool) or not 0 <= found < math.inf:
            raise _wrong(f"{where}.{key}", "a number of 0 or more", found)
    return Standardize(**{key: float(found) for key, found in settings.items()})


def _category(given: object, where: str) -> Category:
    if not isinstance(given, Mapping):
        raise _wrong(where, "a table with name, buckets and embed", given)
    buckets = _whole(given.get("buckets"), f"{where}.buckets", 1, MAX_BUCKETS)
    embed = _whole(given.get("embed") or 1, f"{where}.embed", 1, MAX_WIDTH)
    return Category(_text(given, "name"), buckets, embed, _init(given, where))


def _init(given: Mapping[str, Any], where: str) -> str:
    found = given.get("init", initializers.AUTO)
    if found not in initializers.words():
        raise _wrong(f"{where}.init", f"one of {', '.join(initializers.words())}", found)
    return str(found)


def _vector(given: object, where: str) -> Vector:
    if not isinstance(given, Mapping):
        raise _wrong(where, "a table with size, standardize and block", given)
    size = _whole(given.get("size"), f"{where}.size", 1, MAX_WIDTH)
    block = _text({"block": VECTORS, **given}, "block", f"{where}.block")
    return Vector(size, _standardize(given.get("standardize", False), f"{where}.standardize"), block)


def _pixels(given: object, where: str) -> Pixels:
    if not isinstance(given, Mapping):
        raise _wrong(where, "a table with block and size", given)
    return Pixels(_text(given, "block", f"{where}.block"), _whole(given.get("size"), f"{where}.size", 1, MAX_WIDTH))


def _bag(given: object, where: str) -> Bag:
    if not isinstance(given, Mapping):
        raise _wrong(where, "a table with name, block, buckets, embed, pool, width, most and scales", given)
    bounds = {"buckets": (1, MAX_BUCKETS), "embed": (0, MAX_WIDTH), "width": (1, MAX_ENTRIES), "most": (1, MAX_ENTRIES)}
    sizes = {name: _whole(given.get(name), f"{where}.{name}", *bound) for name, bound in bounds.items()}
    name, block, scales = (_text(given, text, f"{where}.{text}") for text in ("name", "block", "scales"))
    pool = _text(given, "pool", f"{where}.pool")
    if pool not in POOLS or (pool == MAX and not sizes["embed"]):
        raise _wrong(f"{where}.pool", f"one of {', '.join(POOLS)}, {MAX} with embed above 0 alone", pool)
    return Bag(name=name, block=block, scales=scales, pool=pool, init=_init(given, where), **sizes)


def _stateful_spec(given: object, where: str) -> StatefulSpec:
    if not isinstance(given, Mapping) or not isinstance(given.get("settings"), Mapping):
        raise _wrong(where, "a table with name, transform, buckets, embed and settings", given)
    name, transform = (_text(given, text, f"{where}.{text}") for text in ("name", "transform"))
    entry, settings = stateful.get(transform), dict(given["settings"])
    for problem in settings_problems(transform, settings):
        raise _problem(f"{where}.settings", problem)
    buckets = _whole(given.get("buckets", 0), f"{where}.buckets", 0, MAX_BUCKETS)
    embed = _whole(given.get("embed", 0), f"{where}.embed", 0, MAX_WIDTH)
    spec = stateful_spec(name, transform, buckets, embed, settings, _init(given, where))
    if bool(spec.buckets) != ("bucket" in feeds(spec)):
        raise _wrong(f"{where}.buckets", "a whole number from 1 where it reads a category, else 0", spec.buckets)
    if bool(spec.embed) != bool(entry.indexes(spec)):
        raise _wrong(f"{where}.embed", "one where it makes indexes, else 0", spec.embed)
    if (wrong := entry.problem(spec)) is not None:
        raise _wrong(f"{where}.settings", wrong, settings)
    return spec


def _layer(given: object, where: str) -> LayerSpec:
    if not isinstance(given, Mapping):
        raise _wrong(where, "a table such as {dense = 64}", given)
    for problem in layers.wrong(given):
        raise _problem(where, problem)
    return LayerSpec(*layers.parse(given))


def _heads(spec: Mapping[str, Any], shape: InputShape, graph: Graph | None) -> tuple[Head, ...]:
    if spec.get("heads") is None:
        return (Head("", *_loss(spec, shape.classes, "input.classes"), shape),)
    given, labels = spec["heads"], spec["input"].get("labels")
    for where, tables in (("heads", given), ("input.labels", labels)):
        if not isinstance(tables, Sequence) or not tables or not all(isinstance(each, Mapping) for each in tables):
            raise _wrong(where, "a list of tables that have a name", tables)
    names = [_text(each, "name", f"heads[{at}].name") for at, each in enumerate(given)]
    if len(set(names)) != len(names) or "" in names or names != [label.get("name") for label in labels]:
        raise _wrong("heads", "the labels' names, each once, in their order", names)
    for name, problem in wrong_of({each["name"]: each.get("of", "") for each in given}, graph):
        raise _problem(f"heads[{names.index(name)}]" if name else "graph", problem)
    pairs = enumerate(zip(given, labels, strict=True))
    return tuple(_head(each, label, shape, f"heads[{at}]") for at, (each, label) in pairs)


def _head(given: Mapping[str, Any], label: Mapping[str, Any], shape: InputShape, where: str) -> Head:
    classes = _whole(label.get("classes", 0), f"{where}.classes", 0, _native.MAX_CLASSES)
    standardize = _standardize(label.get("standardize_label", False), f"{where}.standardize_label")
    weight = given.get("weight", 1.0)
    if not isinstance(weight, int | float) or isinstance(weight, bool) or not 0 < weight < math.inf:
        raise _wrong(f"{where}.weight", "a number above 0", weight)
    own = replace(shape, classes=classes, standardize_label=standardize)
    loss = _loss(given, classes, f"{where}.classes", f"{where}.loss")
    block, of = _text(label, "block", f"{where}.block"), _text({"of": "", **given}, "of", f"{where}.of")
    return Head(given["name"], *loss, own, float(weight), of, block, bool(label.get("partial", False)))


def _loss(
    spec: Mapping[str, Any], classes: int, where_classes: str, where: str = "loss"
) -> tuple[str, dict[str, Any]]:
    """Returns the name and the settings of a loss, which the spec gives as a name or as a table.

    Settings per class are in the order of the classes.
    """
    given = spec.get("loss")
    table = given if isinstance(given, Mapping) else {"name": given}
    name = _text(table, "name", where)
    settings = {key: value for key, value in table.items() if key != "name"}
    for problem in losses.wrong(name, settings, [str(at) for at in range(classes)]):
        raise _problem(where, problem)
    if losses.label_kind(name) == "class" and classes < 2:
        raise _wrong(where_classes, f"2 or more for {name}", classes)
    return name, {key: value for key, value in losses.normal(name, settings).items() if key != "name"}


def _optimizer(spec: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    given = spec.get("optimizer")
    if not isinstance(given, Mapping):
        raise _wrong("optimizer", 'a table such as {name = "adam"}', given)
    name = _text(given, "name", "optimizer.name")
    settings = {key: value for key, value in given.items() if key not in ("name", "learning_rate")}
    for tables, problem in optimizers.wrong(name, settings):
        raise _problem(".".join(("optimizer", *tables)), problem)
    return name, settings


def _averaging(spec: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    given = spec.get("averaging", {"name": averagings.DEFAULT})
    if not isinstance(given, Mapping):
        raise _wrong("averaging", 'a table such as {name = "mean"}', given)
    name = _text(given, "name", "averaging.name")
    settings = {key: value for key, value in given.items() if key != "name"}
    for problem in averagings.wrong(name, settings):
        raise _problem("averaging", problem)
    return name, averagings.normal(name, settings)


def _schedule(spec: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    given = spec.get("schedule")
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise _wrong("schedule", 'a table such as {name = "plateau"}', given)
    name = _text(given, "name", "schedule.name")
    settings = {key: value for key, value in given.items() if key != "name"}
    for problem in schedules.wrong(name, settings):
        raise _problem("schedule", problem)
    found = schedules.kept(name, settings)
    if found is None:
        raise _wrong("schedule.name", "a schedule that keeps something in the state", name)
    return name, {key: value for key, value in found.items() if key != "name"}


def _problem(where: str, problem: Problem) -> UserMistake:
    return UserMistake(f"model.{where}{'.' if problem.name else ''}{problem.name}: {problem}")
