"""The ways a model can name its network, of which one is enough, and what goes beside it, for file and engine."""

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
    """Yields each given name that does not go with another, and what is expected in its place. `given` has names of
    what a model is given ("layers", "graph", "torch", "heads", "loss")."""
    conflicts = set[str]()
    for name, other, why in _RULES:
        if name in given and other in given and name not in conflicts:
            conflicts.add(name)
            yield name, f"none beside {why}"
