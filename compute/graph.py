"""A computation graph: named vertices that read the inputs and each other, in any order, checked and put in order.

A list of layers is a graph too: each reads the one before it.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from streamtrain.compute import layers, vertices
from streamtrain.compute.builder import Builder, Value
from streamtrain.compute.dead_vertices import live
from streamtrain.compute.options import Problem, problems, read
from streamtrain.compute.shape import Mismatch
from streamtrain.errors import UserMistake

INPUT, OUTPUT = "input", "output"   # what a graph reads; the vertex that the loss takes as it is
OF = "of"                           # what a layer reads
LIKE = "like"                       # names the layer whose parameters another has too
LAYER, PART = "dense", "subset"     # of the outputs, where no vertex is called so; of columns of the input
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_NAMES = 12   # names in a message


@dataclass(frozen=True)
class Vertex:
    name: str
    kind: str   # of layers or of vertices
    reads: tuple[str, ...]
    options: dict[str, Any]   # as build() takes them
    like: str = ""   # the layer whose parameters it has

    @property
    def is_layer(self) -> bool:
        return self.kind in layers.names()

    @property
    def entry(self) -> Any:
        """The file of its kind."""
        return (layers if self.is_layer else vertices).get(self.kind)

    @property
    def description(self) -> str:
        """The path and kind of the vertex and what it reads, for a message."""
        return f"model.graph.{self.name}: {self.kind} of {', '.join(self.reads)}"


@dataclass(frozen=True)
class Outlet:
    """The outlet of a graph that a loss takes. It is the vertex called `taken`, unchanged. If there is none, it is
    an output layer `made` behind the vertex `of`. "" is the last vertex that no loss takes unchanged."""

    output_layer: str
    taken: str
    columns: int
    of: str = ""


@dataclass(frozen=True)
class Graph:
    """Vertices, each behind all that it reads; `columns`: the first and the one behind the last column of each input
    by its name, which a vertex reads as "input.<name>"."""

    vertices: tuple[Vertex, ...]
    columns: Mapping[str, tuple[int, int]]
    prunes: ClassVar[bool] = True   # what nothing depends on is left out; False in tests

    @staticmethod
    def of_layers(named: Sequence[tuple[str, str, dict[str, Any]]]) -> Graph:
        """Builds the graph of a chain of layers, each given as name, kind and options."""
        before, chain = INPUT, []
        for name, kind, options in named:
            chain.append(Vertex(name, kind, (before,), options))
            before = name
        return Graph(tuple(chain), {})

    @staticmethod
    def of_dict(given: object) -> Graph:
        """Builds a graph from {"columns": [[name, first, end], …], "vertices": [{"name": …, …}, …]}. UserMistake
        names the place."""
        if not isinstance(given, Mapping):
            raise UserMistake(f"model.graph: expected a table with columns and vertices, got {given!r:.200}")
        columns = {}
        for each in given.get("columns", ()):
            match each:
                case [str(name), int(first), int(end)] if 0 <= first < end:
                    columns[name] = (first, end)
                case _:
                    raise UserMistake(f"model.graph: expected columns as [name, first, end], got {each!r:.200}")
        tables = given.get("vertices")
        for name, problem in wrong(tables, columns):
            raise UserMistake(f"model.graph{'.' if name else ''}{name}: {problem}")
        assert isinstance(tables, Sequence)
        found = _all_parsed(tables)
        return Graph(tuple(_in_order(found)), columns)

    def whole(self, outlets: Sequence[Outlet]) -> list[Vertex]:
        """All vertices that the outlets depend on, the output layers among them."""
        vertices = list(self.vertices)
        ends = [self.end(outlet) for outlet in outlets]
        taken = {outlet.taken for outlet in outlets}
        last = next((vertex.name for vertex in reversed(vertices) if vertex.name not in taken), INPUT)
        for outlet, end in zip(outlets, ends, strict=True):
            if end == outlet.output_layer and end not in (vertex.name for vertex in vertices):
                options = {"size": outlet.columns, "activation": layers.get(LAYER).NONE}
                vertices.append(Vertex(end, LAYER, (outlet.of or last,), options))
        live_names, heads = live({vertex.name: vertex.reads for vertex in vertices}, ends), _heads(vertices, ends)
        found = [vertex for vertex in vertices if vertex.name in live_names]
        if not self.prunes:
            found += [vertex for vertex in vertices if vertex.name not in live_names]
        return [replace(vertex, options={**vertex.options, "zero": True}) if vertex.name in heads else vertex
                for vertex in found]  # fmt: skip

    def build(self, builder: Builder, x: Value, outlets: Sequence[Outlet]) -> list[Value]:
        """Adds the calls of the whole of it, whose shapes fit (compute/shape_inference.py); gives what each loss takes.
        UserMistake names a vertex that cannot be one."""
        values = {INPUT: x}
        for vertex in self.whole(outlets):
            values[vertex.name] = _built(builder, vertex, [self._value(builder, values, name) for name in vertex.reads])
        found = []
        for outlet in outlets:
            end = self.end(outlet)
            z = values[end]
            if not z.learns:
                raise UserMistake(f"model.graph.{end}: expected one that depends on a parameter, got none")
            found.append(z)
        return found

    def end(self, outlet: Outlet) -> str:
        """The vertex that a loss takes."""
        return outlet.taken if any(vertex.name == outlet.taken for vertex in self.vertices) else outlet.output_layer

    def _value(self, builder: Builder, values: dict[str, Value], name: str) -> Value:
        """Columns of the input are taken out of it when they are first read."""
        if name not in values:
            first, end = self.columns[name.removeprefix(f"{INPUT}.")]
            values[name] = vertices.get(PART).build(builder, name, [values[INPUT]], first=first, end=end)
        return values[name]


def _heads(found: Sequence[Vertex], ends: Sequence[str]) -> set[str]:
    """The layers whose sums are the outputs: they start at 0, so that a model begins as the constant prediction."""
    by_name = {vertex.name: vertex for vertex in found}
    heads, seen, waiting = set[str](), set[str](), list(ends)
    while waiting:
        vertex = by_name.get(waiting.pop())
        if vertex is None or vertex.name in seen:
            continue
        seen.add(vertex.name)
        if vertex.is_layer and getattr(layers.get(vertex.kind), "is_linear", lambda **_: False)(**vertex.options):
            heads.add(vertex.name)
        elif not vertex.is_layer and getattr(vertices.get(vertex.kind), "SUMS", False):
            waiting += vertex.reads
    return heads


def wrong(tables: object, columns: Mapping[str, Any]) -> Iterator[tuple[str, Problem]]:
    """Everything that is wrong with the tables of vertices: the vertex, or "" where it has no name, and the problem."""
    if not isinstance(tables, Sequence) or not all(isinstance(table, Mapping) for table in tables):
        yield "", Problem("", "a table of vertices", tables)
        return
    names: dict[str, None] = {}
    for name in (table.get("name") for table in tables):
        if isinstance(name, str) and _NAME.fullmatch(name) and name != INPUT and name not in names:
            names[name] = None
        else:
            rule = f"names of letters, digits and _, no digit first, each once, none of them {INPUT}"
            yield "", Problem("", rule, name)
            return
    known = dict.fromkeys([INPUT, *(f"{INPUT}.{column}" for column in columns), *names])
    sound = True
    own = {table["name"]: None for table in tables if any(key in layers.names() for key in table)}
    for table in tables:
        for problem in _table_problems(table, known, own):
            sound = False
            yield table["name"], problem
    if sound:
        yield from _cycles(_all_parsed(tables))


def _table_problems(table: Mapping[str, Any], known: Collection[str], own: Collection[str]) -> Iterator[Problem]:
    """`own`: the layers that have parameters of their own."""
    settings = {key: value for key, value in table.items() if key != "name"}
    if LIKE in settings:
        named = settings.pop(LIKE)
        if not isinstance(named, str) or named not in own:
            yield Problem(LIKE, "the name of a layer with parameters of its own", table[LIKE], tuple(own))
        yield from _read_problems(OF, settings.pop(OF, None), 1, 1, known)
        yield from problems(settings, {}, f"option beside {LIKE}")
        return
    kinds = _kinds(settings)
    if len(kinds) != 1:
        of = [*layers.names(), *vertices.names()]
        yield Problem("", f"one of {', '.join(of)}", kinds or dict(settings), of)
        return
    (kind,) = kinds
    if kind in layers.names():
        reads = settings.pop(OF, None)
        yield from problems(settings, layers.options(kind), f"option of {kind}")
        yield from _read_problems(OF, reads, 1, 1, known)
    else:
        reads, module = settings.pop(kind), vertices.get(kind)
        yield from problems(settings, vertices.options(kind), f"option of {kind}")
        yield from _read_problems(kind, reads, module.LEAST, module.MOST, known)


def _kinds(settings: Mapping[str, Any]) -> list[str]:
    """The layers and vertices that a table names; what is an option of a layer in it is none: { dense, activation }."""
    taken = {option for key in settings if key in layers.names() for option in layers.options(key) if option != key}
    return [key for key in settings if key in (*layers.names(), *vertices.names()) and key not in taken]


def _read_problems(key: str, reads: object, least: int, most: int, known: Collection[str]) -> Iterator[Problem]:
    names = [reads] if isinstance(reads, str) else reads
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        yield Problem(key, "the name of what it reads, or an array of names", reads)
    elif not least <= len(names) <= most:
        count = f"{least}" if least == most else f"{least} or more" if len(names) < least else f"at most {most}"
        yield Problem(key, f"{count} to read", reads if len(names) <= _MAX_NAMES else len(names))
    else:
        for name in names:
            if name not in known:
                yield Problem(key, f"{INPUT}, {INPUT}.<column> or the name of a vertex", name, tuple(known))


def _all_parsed(tables: Sequence[Mapping[str, Any]]) -> dict[str, Vertex]:
    """By name, of tables in which nothing is wrong."""
    found = {table["name"]: _parsed(table) for table in tables if LIKE not in table}
    again = {table["name"]: (table[LIKE], table[OF]) for table in tables if LIKE in table}
    for name, (like, reads) in again.items():
        of = (reads,) if isinstance(reads, str) else tuple(reads)
        found[name] = replace(found[like], name=name, reads=of, like=like)
    return {table["name"]: found[table["name"]] for table in tables}


def _parsed(table: Mapping[str, Any]) -> Vertex:
    """Parses a table in which nothing is wrong."""
    settings = {key: value for key, value in table.items() if key != "name"}
    if any(key in layers.names() for key in settings):
        reads = settings.pop(OF)
        kind, options = layers.parse(settings)
    else:
        kind = next(key for key in settings if key in vertices.names())
        reads = settings.pop(kind)
        options = read(settings, vertices.options(kind))
    return Vertex(table["name"], kind, (reads,) if isinstance(reads, str) else tuple(reads), options)


def _cycles(found: Mapping[str, Vertex]) -> Iterator[tuple[str, Problem]]:
    placed = {vertex.name for vertex in _in_order(found)}
    left = {name: None for name in found if name not in placed}
    if left:
        path, at = dict[str, None](), next(iter(left))
        while at not in path:
            path[at] = None
            at = next(name for name in found[at].reads if name in left)
        way = list(path)
        circle = [*way[way.index(at) :], at]
        names = circle if len(circle) <= _MAX_NAMES else [*circle[: _MAX_NAMES - 1], "…", at]
        yield at, Problem("", "no way back to itself", " <- ".join(names))


def _in_order(found: Mapping[str, Vertex]) -> Iterator[Vertex]:
    """Each behind what it reads, otherwise as written; without those of a circle, and what depends on them."""
    place = {name: at for at, name in enumerate(found)}
    left = {name: set(vertex.reads) & found.keys() for name, vertex in found.items()}   # that it still waits for
    readers: dict[str, list[str]] = {name: [] for name in found}
    for name, reads in left.items():
        for each in reads:
            readers[each].append(name)
    ready = [place[name] for name, reads in left.items() if not reads]
    names = list(found)
    while ready:
        name = names[heapq.heappop(ready)]
        yield found[name]
        for reader in readers[name]:
            left[reader].discard(name)
            if not left[reader]:
                heapq.heappush(ready, place[reader])


def _built(builder: Builder, vertex: Vertex, reads: Sequence[Value]) -> Value:
    given = (vertex.like or vertex.name, reads[0]) if vertex.is_layer else (vertex.name, reads)
    try:
        output: Value = vertex.entry.build(builder, *given, **vertex.options)
        assert output.shape == vertex.entry.shape([value.shape for value in reads], **vertex.options), (
            vertex.description
        )
    except Mismatch as mismatch:
        raise UserMistake(f"{vertex.description}: {mismatch}") from None
    return output
