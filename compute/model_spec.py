"""The model spec, a plain dict that goes into the manifest, checked and made into typed parts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from streamtrain import _native
from streamtrain.compute import layers, losses, optimizers
from streamtrain.compute.input import Category, InputShape, Standardize
from streamtrain.errors import UserMistake

MAX_WIDTH = _native.MAX_COLUMNS   # of a matrix; a spec from a manifest must not ask for any amount of memory
MAX_BUCKETS = 1 << 28


@dataclass(frozen=True)
class LayerSpec:
    kind: str
    size: int
    options: dict[str, Any]


@dataclass(frozen=True)
class ModelSpec:
    """What a model is made of. `from_dict` raises UserMistake naming the place in the dict."""

    input: InputShape
    layers: tuple[LayerSpec, ...]
    loss: str
    optimizer: str
    optimizer_options: dict[str, float]
    average_optimizer_state: bool

    @staticmethod
    def from_dict(spec: Mapping[str, Any]) -> ModelSpec:
        """Reads {"input": {"numbers", "standardize", "categories", "classes", "standardize_label"}, "layers", "loss",
        "optimizer", "average_optimizer_state"}; other keys are left alone."""
        optimizer, options = _optimizer(spec)
        loss = _text(spec, "loss")
        losses.get(loss)
        shape = _input(spec)
        if losses.label_kind(loss) == "class" and shape.classes < 2:
            raise _wrong("input.classes", f"2 or more for {loss}", shape.classes)
        given = spec.get("layers", [])
        if not isinstance(given, Sequence) or isinstance(given, str):
            raise _wrong("layers", "a list of layers", given)
        parts = tuple(_layer(layer, f"layers[{at}]") for at, layer in enumerate(given))
        return ModelSpec(shape, parts, loss, optimizer, options, bool(spec.get("average_optimizer_state", True)))


def _wrong(where: str, expected: str, got: object) -> UserMistake:
    return UserMistake(f"model.{where}: expected {expected}, got {got!r}")


def _text(spec: Mapping[str, Any], key: str) -> str:
    found = spec.get(key)
    if not isinstance(found, str):
        raise _wrong(key, "a name", found)
    return found


def _whole(found: object, where: str, least: int, most: int) -> int:
    if not isinstance(found, int) or isinstance(found, bool) or not least <= found <= most:
        raise _wrong(where, f"a whole number from {least} to {most}", found)
    return found


def _input(spec: Mapping[str, Any]) -> InputShape:
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
    shape = InputShape(numbers, standardize, categories, classes, label)
    if not 1 <= shape.width <= MAX_WIDTH:
        raise _wrong("input", f"1 to {MAX_WIDTH} columns with their embeddings", shape.width)
    if len({category.name for category in categories}) != len(categories):
        raise _wrong("input.categories", "names that differ", [category.name for category in categories])
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
    return Category(_text(given, "name"), buckets, _whole(given.get("embed") or 1, f"{where}.embed", 1, MAX_WIDTH))


def _layer(given: object, where: str) -> LayerSpec:
    if not isinstance(given, Mapping):
        raise _wrong(where, "a table such as {dense = 64}", given)
    known = layers.names()
    kinds = [key for key in given if key in known]
    if len(kinds) != 1:
        raise _wrong(where, f"one of {', '.join(known)}", dict(given))
    module = layers.get(kinds[0])
    options: dict[str, Any] = {}
    for key, found in given.items():
        if key == kinds[0]:
            continue
        if key not in module.OPTIONS:
            raise _wrong(f"{where}.{key}", f"one of {', '.join(module.OPTIONS)}", key)
        if found not in module.OPTIONS[key]:
            raise _wrong(f"{where}.{key}", f"one of {', '.join(module.OPTIONS[key])}", found)
        options[key] = found
    return LayerSpec(kinds[0], _whole(given[kinds[0]], f"{where}.{kinds[0]}", 1, MAX_WIDTH), options)


def _optimizer(spec: Mapping[str, Any]) -> tuple[str, dict[str, float]]:
    given = spec.get("optimizer")
    if not isinstance(given, Mapping):
        raise _wrong("optimizer", 'a table such as {name = "adam"}', given)
    name = given.get("name")
    if not isinstance(name, str):
        raise _wrong("optimizer.name", f"one of {', '.join(optimizers.names())}", name)
    options: dict[str, float] = dict(optimizers.get(name).DEFAULTS)
    for key, found in given.items():
        if key in ("name", "learning_rate"):
            continue
        if key not in options:
            raise _wrong(f"optimizer.{key}", f"one of {', '.join(options) or 'learning_rate'}", key)
        if not isinstance(found, int | float) or isinstance(found, bool) or not 0 <= found < math.inf:
            raise _wrong(f"optimizer.{key}", "a number of 0 or more", found)
        if key.startswith("beta") and found >= 1:
            raise _wrong(f"optimizer.{key}", "a number below 1", found)
        options[key] = float(found)
    return name, options
