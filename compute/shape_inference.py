"""A pass over the vertices of a graph: the shape of each from those of what it reads, before anything is built."""

from __future__ import annotations

from collections.abc import Sequence

from streamtrain import _native
from streamtrain.compute.graph import INPUT, PART, Graph, Outlet, Vertex
from streamtrain.compute.shape import Mismatch, Shape
from streamtrain.errors import UserMistake


def shapes(graph: Graph, width: int, outlets: Sequence[Outlet]) -> dict[str, Shape]:
    """By name, in order: the input's, its columns' and those of all vertices; `width`: of the input. UserMistake names
    the first that does not fit."""
    whole = Shape(1, width)
    found = {INPUT: whole}
    for name, (first, end) in graph.columns.items():
        part = Vertex(f"{INPUT}.{name}", PART, (INPUT,), {"first": first, "end": end})
        found[part.name] = _shape(part, [whole])
    for vertex in graph.whole(outlets):
        found[vertex.name] = _shape(vertex, [found[name] for name in vertex.reads])
    dead = dict(found)   # what nothing depends on is not built; a mistake in it is one all the same
    for vertex in graph.vertices:
        if vertex.name not in dead:
            dead[vertex.name] = _shape(vertex, [dead[name] for name in vertex.reads])
    for outlet in outlets:
        _check(graph.end(outlet), outlet, found[graph.end(outlet)])
    return found


def _shape(vertex: Vertex, reads: Sequence[Shape]) -> Shape:
    try:
        shape: Shape = vertex.entry.shape(reads, **vertex.options)
        if shape.columns > _native.MAX_COLUMNS:
            most = _native.MAX_COLUMNS
            raise Mismatch(f"expected at most {most} columns, got {shape.columns}; make what it reads narrower")
    except Mismatch as mismatch:
        raise UserMistake(f"{vertex.description}: {mismatch}") from None
    return shape


def _check(end: str, outlet: Outlet, given: Shape) -> None:
    if given.columns != outlet.columns:
        raise UserMistake(
            f"model.graph.{end}: expected {outlet.columns} columns, which the loss takes, got {given.columns}; under "
            "another name it gets an output layer"
        )
    if given.times != 1:
        raise UserMistake(f"model.graph.{end}: expected a row for each row, got {given.times}; unstack it")
