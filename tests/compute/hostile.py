"""Arguments of ops that nobody gives on purpose: values, weights and indexes in the place of an example's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.compute.spec import Arg, Array, Op

VALUES: dict[str, Sequence[float]] = {
    "denormal": (1e-45, -1e-45, 1.1754942e-38, -1e-40),
    "zero": (0.0, -0.0),
    "huge": (1e30, -1e30),
    "infinite": (np.inf, -np.inf),
    "nan": (np.nan, -np.nan),
    "mixed": (1e-45, -1e-40, 0.0, -0.0, 1e30, -1e30, np.inf, -np.inf),
}
WEIGHTS: dict[str, Sequence[float]] = {
    "weight_0": (0.0, -0.0), "weight_tiny": (1e-45, 1e-40), "weight_huge": (1e30, 1e38),
    "weight_mixed": (0.0, 1e-45, 1.0, 1e30),
}
INDEXES: dict[str, Sequence[int]] = {"index": (-1, -(2**31), 2**31 - 1)}
KINDS: dict[str, Sequence[float]] = {**VALUES, **WEIGHTS, **INDEXES}
OVERFLOWS = ("huge", "infinite", "nan", "mixed")   # what a float may hold no longer on the way
ALL_OF_THEM = ("weight_0", "weight_tiny")   # so that the batch has no other weight
BY_ROW = (("rows",), ("entries",), ("n",))
LEARNED = ("p", "table", "w", "bias")
FINITE = ("numbers", "label", "scale", "table", "weights")   # decoders refuse others; so is a table as a step begins
FROM_RECORDS = ("categories", "index", "label", "hashes")   # integers that a record may have chosen
SHARE = 0.2   # of the elements
ROUNDING = 2.0**-23   # of a float


def takes(op: Op, arg: Arg, kind: str, content: Any) -> bool:
    """Returns whether this kind is put into the argument. Values are put into numbers of rows and into parameters; all
    that an optimizer keeps is finite, and so are statistics."""
    names = {each.name for each in op.args}
    if isinstance(content, list):
        return all(takes(op, arg, kind, one) for one in content)
    if arg.role not in ("given", "changed") or not isinstance(content, np.ndarray):
        return False
    if kind in WEIGHTS:
        return arg.name == "weight"
    if kind in INDEXES:
        return arg.name in FROM_RECORDS and content.dtype.kind == "i" and "lead" not in names
    if arg.name == "weight" or content.dtype.kind != "f" or ("settings" in names and arg.name in "abc"):
        return False
    if arg.name in FINITE and not np.isfinite(VALUES[kind]).all():
        return False
    if arg.name == "label" and (content == np.floor(content)).all():   # a class, a count: decoders see to it
        return False
    return arg.name == "g" or (arg.dtype != "f64" and (arg.shape[:1] in BY_ROW or arg.name in LEARNED))


def put_into(op: Op, kind: str, given: Mapping[str, Any]) -> bool:
    """Puts a kind into an op's arguments by name, in place; the step block gets the weights' sum. Whether there was
    a place for it."""
    rng, found = np.random.default_rng(11), False
    for arg in op.args:
        content = given[arg.name]
        for one in arrays_of(content) if takes(op, arg, kind, content) else ():
            put = (rng.random(one.shape) < SHARE) | (kind in ALL_OF_THEM) | (one.size == 1)
            one[put] = rng.choice(np.array(KINDS[kind], one.dtype), int(put.sum()))
            found = True
    if isinstance(given.get("step"), _native.StepBlock) and "weight" in given:
        given["step"].weight_sum = float(np.maximum(given["weight"], 0).sum(dtype=np.float64))
        given["step"].active_rows = int(np.greater(given["weight"], 0).sum())
    return found


def widened(op: Op, values: Sequence[Any], seed: int = 0) -> list[Any]:
    """Arguments in double; with a seed each number that is read a rounding of a float away."""
    rng, found = np.random.default_rng(seed), []

    def wide(arg: Arg, content: Any) -> Any:
        if isinstance(content, list):
            return [wide(arg, one) for one in content]
        if not isinstance(content, np.ndarray) or content.dtype != np.float32:
            return content
        moved = 1 + ROUNDING * rng.uniform(-1, 1, content.shape) if seed and arg.role in ("given", "changed") else 1.0
        return content.astype(np.float64) * moved

    for arg, content in zip(op.args, values, strict=True):
        found.append(wide(arg, content))
    return found


def fill_outputs(op: Op, given: Mapping[str, Any]) -> None:
    """With what shows where it is read before it is written."""
    for arg in op.args:
        for content in arrays_of(given[arg.name]):
            if arg.role in ("out", "part", "scratch") and isinstance(content, np.ndarray):
                content[...] = np.nan if content.dtype.kind == "f" else 77


def arrays_of(content: Any) -> list[Any]:
    """Returns the arrays of an argument that is one, or several."""
    return content if isinstance(content, list) else [content]


def bits(content: Any, fields: Sequence[str]) -> Any:
    """To compare; of a NaN not which one it is."""
    if isinstance(content, _native.StepBlock):
        return tuple(repr(getattr(content, name)) for name in fields)
    held: Array = content.copy()
    if held.dtype.kind == "f":
        held[np.isnan(held)] = np.nan
    return held.tobytes()
