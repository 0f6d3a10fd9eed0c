"""Model shapes over the registries of layers, losses, optimizers and vertices, and tests that go through them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zlib import crc32

from long_tables import EVERY
from looped import over
from stateful_examples import examples as stateful
from stateful_examples import from_example

from streamtrain.compute import backends, layers, losses, optimizers, vertices

BACKENDS = [*(name for name in backends.names() if backends.get(name).answers() is None), "reference"]
LAYERS = [example for name in layers.names() for example in layers.examples(name)]
HIDDEN = {"dense": 7, "activation": "relu"}
GELU = {"dense": 24, "activation": "gelu"}
RESIDUAL: list[dict[str, Any]] = [
    {"name": "a", **GELU, "of": "input"}, {"name": "b", **GELU, "of": "a"}, {"name": "c", "add": ["a", "b"]},
    {"name": "s", "scale": ["c"], "by": 0.5}, {"name": "d", "dense": 24, "activation": "relu", "of": "s"},
    {"name": "drop", "dropout": 0.3, "of": "d"}, {"name": "e", "multiply": ["drop", "s"]},
    {"name": "o", "average": ["e", "a"]},
]  # fmt: skip
SHAPES: list[dict[str, Any]] = [{"layers": [layer]} for layer in LAYERS]
SHAPES += [{"layers": [HIDDEN, layer]} for layer in LAYERS]
SHAPES += [
    {"loss": name, "layers": [HIDDEN], "standardize": standardize, **example}
    for name in losses.names() for example in losses.get(name).EXAMPLES for standardize in (False, True)
]
SHAPES += [{"optimizer": name, "categories": 2, "layers": [HIDDEN]} for name in optimizers.names()]
SHAPES += [{"optimizer": name, "bags": [0, 1, 2], "layers": [HIDDEN]} for name in optimizers.names()]
SHAPES += [{"bags": [at], "numbers": 0} for at in range(6)]
SHAPES += [{"loss": "softmax_cross_entropy", "bags": [2, 3], "categories": 1}, {"vectors": [3], "numbers": 0}]
SHAPES += [{"pixels": [12], "numbers": 0, "layers": [HIDDEN]}, {"pixels": [3, 5], "vectors": [2], "bags": [0]}]
SHAPES += [{"vectors": [3, 2], "standardize": True, "categories": 1, "bags": [0], "layers": [HIDDEN]}]
SHAPES += [{"clips": [4, 2], "standardize": True, "vectors": [3], "layers": [HIDDEN]}, {"clips": [5], "numbers": 0}]
SHAPES += [{"categories": 2, "numbers": 0}, {"categories": 1, "standardize": True}, {"layers": []}]
SHAPES += [{"held": [from_example(name, example)]} for name, example in stateful()]
SHAPES += [{"held": [from_example(*each) for each in dict(stateful()).items()], "numbers": 0, "layers": [HIDDEN]}]


def graph_of(kind: str, widths: list[int], options: dict[str, Any]) -> dict[str, Any]:
    """A vertex that reads layers, of which the first has a relu of its own and is read again behind it."""
    names = [f"v{at}" for at in range(len(widths))]
    below = [{"name": name, "dense": width, "activation": "relu" if name == "v0" else "tanh", "of": "input"}
             for name, width in zip(names, widths, strict=True)]
    vertex = {"name": "made", kind: names, **options}
    return {"graph": [{"name": "last", "concat": ["made", "v0", "made"]}, vertex, *below], "categories": 1}


VERTICES = [(kind, *example) for kind in vertices.names() for example in vertices.get(kind).EXAMPLES]
SHAPES += [graph_of(*vertex) for vertex in VERTICES]
SHAPES += [
    {"graph": [{"name": "a", "dense": 1, "of": "input.first"}, {"name": "b", "dense": 1, "of": ["input.rest"]},
               {"name": "unread", "dense": 9, "of": "b"}, {"name": "output", "add": ["a", "b"]}]},
    {"graph": [{"name": "a", **HIDDEN, "of": "input.first"}, {"name": "b", "dense": 2, "of": "a"},
               {"name": "c", "like": "a", "of": "b"}]},
    {"graph": [{"name": "a", "dense": 4, "activation": "relu", "of": "input.first"},
               {"name": "b", "dense": 4, "of": "input.rest"}, {"name": "s", "stack": ["a", "b", "a"]},
               {"name": "n", "batch_norm": 1e-3, "of": "s"},
               {"name": "h", "dense": 6, "activation": "relu", "of": "n"}, {"name": "m", "multiply": ["h", "h"]},
               {"name": "l", "layer_norm": 1e-3, "of": "m"}, {"name": "u", "unstack": "l", "index": 2},
               {"name": "v", "unstack": "h"}, {"name": "d", "dot": ["u", "v"]}, {"name": "w", "subset": "n", "end": 2},
               {"name": "x", "unstack": "w", "index": 1}, {"name": "last", "concat": ["d", "u", "x"]}]},
    {"graph": [{"name": "a", "subtract": ["input.first", "input.first"]}, {"name": "b", "concat": ["a", "input"]}]},
]  # fmt: skip
LATE, DELAY = ("late", "binary_cross_entropy", {"partial": True}), ("delay", "huber", {"weight": 0.3})
SHAPES += [
    {"layers": [HIDDEN], "heads": [
        LATE, ("other", name, {"loss": {"name": name, **example.get("settings", {})}, "weight": 2.5, "partial": True,
                               "standardize_label": "standardize_label" in example}),
    ]} for name in losses.names() for example in losses.get(name).EXAMPLES
]  # fmt: skip
SHAPES += [
    {"heads": [DELAY, LATE], "bags": [0, 2], "categories": 1, "standardize": True},
    {"heads": [("mode", "softmax_cross_entropy", {"of": "a"}), LATE, DELAY], "graph": [
        {"name": "a", **HIDDEN, "of": "input.first"}, {"name": "late", "dense": 1, "of": "a"},
        {"name": "b", "concat": ["a", "late", "input"]},
    ]},
]  # fmt: skip

NAMES = {id(shape): f"{at}-{'-'.join(map(str, shape.values()))}" for at, shape in enumerate(SHAPES)}


def name_of(shape: dict[str, Any]) -> str:
    return NAMES[id(shape)]


def each_shape(test: Callable[..., None]) -> Any:
    """Runs a test with some of the shapes, and in `full` with all of them; fails with the names of all that fail.

    Each test begins its sample elsewhere, so that together they visit every shape.
    """
    first = crc32(test.__name__.encode()) % EVERY
    return over("shape", [*SHAPES[first:], *SHAPES[:first]], name_of, sampled=True)(test)
