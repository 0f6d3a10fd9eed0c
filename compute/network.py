"""What a model says its network by, of which one is enough, and what goes beside it, for file and engine."""

from __future__ import annotations

from collections.abc import Collection, Iterator

_RULES = (  # what, beside what, and why not
    ("layers", "torch", "a PyTorch module, which is the whole network"),
    ("graph", "torch", "a PyTorch module, which is the whole network"),
    ("graph", "layers", "layers, which are the whole network"),
    ("heads", "torch", "a PyTorch module, which has one loss"),
    ("loss", "heads", "heads, of which each has its own"),
)


def given_beside(given: Collection[str]) -> Iterator[tuple[str, str]]:
    """Of what a model is given, by name ("layers", "graph", "torch", "heads", "loss"), each that does not go with
    another, and what is expected in its place."""
    told = set[str]()
    for name, other, why in _RULES:
        if name in given and other in given and name not in told:
            told.add(name)
            yield name, f"none beside {why}"
