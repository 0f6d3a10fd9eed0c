"""Jobs at random for the comparison of decoders: columns of every kind, transforms, rows, and the formats for them.

A new kind needs an entry in KINDS; a format needs none, unless its records are read by a schema of their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import msgpack
from avro_schemas import nullable, record
from example_format import plain_formats
from hypothesis import strategies as st
from proto_schemas import proto

from streamtrain import _native
from streamtrain.columns.formats import Format, format_names, is_lines, mistakes, needs_schema
from streamtrain.columns.formats.avro_schema import canonical
from streamtrain.columns.paths import nested, steps
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake
from tests.columns.reference import Around

Cells = st.SearchStrategy[Any]
WHOLE = ("long", "int64")  # field types: of Avro, of Protobuf
FLOAT, DOUBLE, TEXT, TRUTH = ("float", "float"), ("double", "double"), ("string", "string"), ("boolean", "bool")


class Sort(NamedTuple):
    """Columns of one kind: settings they may have, cells that fit, and a cell to stand in for a missing one."""

    settings: st.SearchStrategy[dict[str, Any]]
    cells: Cells
    stand_in: Any
    fields: tuple[tuple[str, str], ...]  # that Avro and Protobuf may have for such a column
    is_list: bool = False


def these(**choices: Sequence[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Settings, each one of its choices; a choice of None is left out."""
    drawn = st.fixed_dictionaries({name: st.sampled_from(each) for name, each in choices.items()})
    return drawn.map(lambda given: {name: value for name, value in given.items() if value is not None})


numbers: Cells = st.one_of(
    st.integers(-3, 9), st.floats(-99, 99, width=32), st.sampled_from([0.1, -0.0, True, 2**53 + 1, -(2**62), 3e38])
)
words: Cells = st.one_of(
    st.sampled_from(["AA", "B6", "é", "walk", "sit", "true", "1", "-0", '"\\\n,;', "\U0001f6eb", "x" * 40]),
    st.integers(-9, 9), st.text(st.characters(codec="utf-8", exclude_characters="\0\ufeff"), max_size=9),
)  # fmt: skip
decimals: Cells = st.one_of(st.sampled_from(["1.5", " -2e3", "+.5", "007", "-0", "1e-400"]), numbers)
times: Cells = st.one_of(st.integers(0, 2**41), st.sampled_from([-1, 1_790_000_000_123, 0, 7.75]))
amounts: Cells = st.one_of(
    st.builds(
        "{}{}{}{}{}".format, st.sampled_from(["", "$", "-", "+€ ", "USD ", "(", " - US$"]), st.integers(0, 9999),
        st.sampled_from(["", ",234", ".234", "'234", " 234", "\u00a0234", ",23,456"]),
        st.sampled_from(["", ".5", ",5", "e2"]), st.sampled_from(["", " %", ")", " €", "EUR", "\u202f", "e"]),
    ),
    decimals,
)  # fmt: skip
flags: Cells = st.sampled_from(["True", "true", "1", "1.0", " yes", "F", "0", "off", True, False, 1, 0, 1.0, 0.0])
codes: Cells = st.one_of(
    st.sampled_from(["1.0", "1", " +1", "-0.0", "007", "1e3", True, 1.0, str(2**64), 2**64, "00" + "9" * 30]),
    st.integers(-9, 9),
)  # fmt: skip
missing: Cells = st.sampled_from([*_native.MISSING_WORDS, " NA ", "  ", "gone", "NAN ", float("nan")])
moments: Cells = st.sampled_from(["2026-11-22T02:10:00Z", "2026-11-22", "2024-02-29T23:59:60.5+01:30", "1969-12-31"])
odd: Cells = st.sampled_from(
    ["", "n/a", "12", [], [1], ["a", 2], {}, {"a": 1}, [[1, 2.5]], [{"a": 1}], True, 0.5, -1, 1e39, 2**70,
     -1e-60, float("nan"), float("inf"), "\ufeffx"]
)  # fmt: skip
entries: Cells = st.lists(st.one_of(words, words, st.none()), max_size=5)
pairs: Cells = st.one_of(
    st.lists(st.tuples(st.one_of(st.sampled_from([0, 7, 63, 64, -1]), words), numbers).map(list), max_size=5),
    st.lists(st.lists(st.sampled_from([0, 1.5, True, None, "7e", [1], {"a": 1}]), min_size=1, max_size=3), max_size=2),
    st.dictionaries(st.sampled_from(["a", "7", "63", "é"]), numbers, max_size=4),
)
two: Cells = st.lists(numbers, min_size=2, max_size=2)
points: Cells = st.one_of(two, two, two, st.sampled_from([[1, None], [None, 2.5], [1, "x"], [1, 2, 3]]))
syllables = st.sampled_from([*"aB ._7é\u0301\u0130\u2165日\0", "Late ", "again, ", "\U000e0101"])
spoken: Cells = st.lists(syllables, min_size=2, max_size=8).map("".join)

KINDS: dict[str, Sort] = {
    "number": Sort(these(standardize=[None, True]), numbers, -1.5, (DOUBLE, FLOAT, WHOLE, TRUTH)),
    "score": Sort(these(standardize=[True]), numbers, "mean", (DOUBLE, FLOAT)),
    "decimal": Sort(these(parse=["decimal"]), decimals, 2.5, (TEXT, DOUBLE)),
    "amount": Sort(these(parse=["amount"]), amounts, 2.5, (TEXT, DOUBLE)),
    "comma": Sort(these(parse=["decimal_comma"]), amounts, 2.5, ()),  # slow encoders by a schema write a point
    "flag": Sort(
        these(kind=["category"], buckets=[1000], parse=["bool"], hash_bits=[None, 64]), flags, "none",
        (TEXT, WHOLE, TRUTH),
    ),
    "code": Sort(
        these(kind=["category"], buckets=[1000], parse=["number"]), codes, "none",
        (TEXT, WHOLE, DOUBLE),
    ),
    "codes": Sort(
        these(kind=["category"], buckets=[1000], parse=["number", "bool"], list=[True], most=[4]),
        st.lists(st.one_of(codes, flags, missing, st.none()), max_size=4), "none", (TEXT, WHOLE), is_list=True,
    ),
    "category": Sort(
        these(kind=["category"], buckets=[1000, 7], hash_bits=[None, 64]), words, "none", (TEXT, WHOLE, TRUTH)
    ),
    "categories": Sort(
        these(kind=["category"], list=[True], buckets=[1000], most=[4, 2], cut=[None, True], hash_bits=[None, 64]),
        entries, "none", (TEXT, WHOLE), is_list=True,
    ),
    "vector": Sort(these(kind=["vector"], size=[2]), points, 0.25, (FLOAT, DOUBLE), is_list=True),
    "place": Sort(these(kind=["vector"], size=[2], standardize=[True]), points, "mean", (FLOAT,), is_list=True),
    "sparse": Sort(these(kind=["sparse"], buckets=[64], most=[4, 2], cut=[None, True]), pairs, 0, ()),
    "text": Sort(
        these(kind=["text"], buckets=[1000], ngrams=[None, 2, [1, 2]], by=[None, "char"], most=[9, 3],
              cut=[None, True], lower_case=[None, False], hash_bits=[None, 64]), spoken, "no", (TEXT,),
    ),
    "time": Sort(these(role=["event_time"], unit=[None, "s", "us", "ns"]), times, 5, (WHOLE, DOUBLE)),
    "moment": Sort(
        these(role=["event_time"], parse=["iso8601"], zone=[None, "Europe/Berlin"]), moments, 5, (TEXT,)
    ),
    "weight": Sort(
        these(role=["weight"]), st.one_of(st.floats(0, 9, width=32), st.sampled_from([0, 0.5, -1e-60, -1])), 2.0,
        (DOUBLE, FLOAT),
    ),
    "key": Sort(these(role=["key"]), words, None, (TEXT,)),
}  # fmt: skip
ALONE = ("time", "moment", "weight", "key")  # of which a job has one

seldom = st.sampled_from([False] * 11 + [True])
TEXTS = ("decimal", "amount", "comma", "moment", "category", "text", "a class", "flag", "code", "a truth", "a code")
yes_or_no: Cells = st.sampled_from([0, 1, True, 1.0])
LABELS: dict[str, tuple[Sort, str]] = {
    "one of two": (Sort(these(), yes_or_no, 1, (WHOLE, DOUBLE, TRUTH)), "binary_cross_entropy"),
    "a number": (Sort(these(standardize=[None, True]), numbers, 3, (DOUBLE, WHOLE)), "mean_squared_error"),
    "a count": (Sort(these(), st.integers(0, 9), 3, (WHOLE, DOUBLE)), "poisson"),
    "an index": (Sort(these(classes=[3]), st.integers(0, 2), 2, (WHOLE,)), "softmax_cross_entropy"),
    "a class": (
        Sort(these(classes=[["walk", "sit", "true"]]), st.sampled_from(["walk", "sit", "true", True]), "sit", (TEXT,)),
        "softmax_cross_entropy",
    ),
    "a truth": (
        Sort(these(parse=["bool"], classes=[None, ["true", "false"]]), flags, None, (TEXT, WHOLE, TRUTH)),
        "binary_cross_entropy",
    ),
    "a code": (
        Sort(these(parse=["number"], classes=[["1", "7", "-3"]]), st.sampled_from(["1.0", "007", -3, 7.0, True]), 7,
             (TEXT, WHOLE)),
        "softmax_cross_entropy",
    ),
    "a class of two": (
        Sort(these(classes=[["1", "0"], ["true", "false"]]), st.sampled_from([0, 1, True]), None, (WHOLE, TRUTH)),
        "binary_cross_entropy",
    ),
}  # fmt: skip
# transforms of columns, by what the columns they read are
TABLES: list[tuple[tuple[str, ...], Callable[..., dict[str, Any]]]] = [
    (("number", "number"), lambda a, b: {"expr": f"{a} / {b} + 1", "missing": 0}),
    (("number",), lambda a: {"clip": a, "low": -2, "high": 50, "missing": "skip"}),
    (("number",), lambda a: {"bins": a, "edges": [0, 2.5], "missing": "dead_letter"}),
    (("number",), lambda a: {"is_missing": a}),
    (("category",), lambda a: {"lower": a, "buckets": 9, "missing": "none"}),
    (("category", "category"), lambda a, b: {"cross": [a, b], "buckets": 300, "missing": ""}),
]
CONDITIONS: list[tuple[str, Callable[[str], str]]] = [
    ("number", lambda a: f"{a} > 0"),
    ("number", lambda a: f"{a} is missing or {a} != 7"),
    ("category", lambda a: f"{a} != 'AA'"),
]
WITH_OPTIONS: dict[str, Format] = {"vw": {"name": "vw", "bits": 6}}  # as many buckets as columns have
SOURCES = ["key", "headers.t", "timestamp", "partition", "offset"]
AROUND = [
    Around(),
    Around(3, 2**40, 1_800_000_000_123, b"AA", (("t", b"1.5"),)),
    Around(1, 7, 5, b"", (("t", b"first"), ("t", b""))),
    Around(0, 0, 0, b"\xff", (("t", b"2026-11-22T02:10:00Z"),)),
]


@dataclass(frozen=True)
class DrawnJob:
    """The columns of a job file, rows for it, and the message metadata of their records."""

    columns: dict[str, dict[str, Any]]
    loss: str
    rows: list[dict[str, Any]]  # by column; absent cells are missing
    transforms: dict[str, dict[str, Any]]
    where: str | None
    around: Around
    is_request: bool
    fields: dict[str, tuple[str, str]]  # a column's type in Avro and in Protobuf
    kinds: dict[str, str]
    words: tuple[str, ...] = ()  # that stand for a missing number or time

    @cached_property
    def schema(self) -> Schema:
        schema = Schema.from_columns(
            self.columns, self.loss, self.transforms, self.where, missing_words=self.words
        )
        return schema.for_requests() if self.is_request else schema

    @cached_property
    def nested_rows(self) -> list[dict[str, Any]]:
        """The rows as a program has them: cells at their paths."""
        return [nested(row, self.schema.paths) for row in self.rows]

    def formats(self) -> Iterator[Format]:
        """Yields the formats whose records can have all of the job's columns."""
        for name in format_names():
            given: Format | None = WITH_OPTIONS.get(name, name)
            if is_lines(name) and (self.schema.paths or self.is_request):  # a line without a cell is none
                continue
            if needs_schema(name):
                given = _avro(self) if name == "avro" else _protobuf(self)
            if given is not None and not list(mistakes(given, self.schema)):
                yield given


def _typed(job: DrawnJob) -> dict[str, tuple[str, bool]] | None:
    """Returns each column's place in the record and whether it is a list; None where no schema has such a place."""
    found = {}
    for name, column in job.columns.items():
        if "from" in column:
            continue
        path = column.get("path", name)
        if name not in job.fields or "[" in path:
            return None
        found[name] = path, (KINDS[job.kinds[name]].is_list if job.kinds[name] in KINDS else False)
    return found


def _avro(job: DrawnJob) -> Format | None:
    places = _typed(job)
    if places is None:
        return None
    inner, outer = [], []
    for name, (path, is_list) in places.items():
        of: Any = job.fields[name][0]
        of = {"type": "array", "items": nullable(of)} if is_list else of
        of = [of, "null"] if name == "b" else nullable(of)
        *above, last = steps(path)
        (inner if above else outer).append((str(last), of))
    row = record(*outer, *([("u", nullable(record(*inner, name="Inner")))] if inner else []))
    return {"name": "avro", "schema": canonical(json.dumps({"type": "array", "items": row}))}


def _protobuf(job: DrawnJob) -> Format | None:
    places = _typed(job)
    if places is None:
        return None
    inner, outer = "", ""
    for number, (name, (path, is_list)) in enumerate(places.items(), 1):
        *above, last = steps(path)
        text = f"{'repeated' if is_list else 'optional'} {job.fields[name][1]} {last} = {number}; "
        inner, outer = (inner + text, outer) if above else (inner, outer + text)
    within = f"message Inner {{ {inner}}} " if inner else ""
    outer += "Inner u = 99; " if inner else ""
    return proto(f"message Rows {{ repeated Row rows = 1; }} message Row {{ {outer}}} {within}")


def formats_of_bytes(column: str, schema: Schema) -> dict[str, Format]:
    """Returns the formats that hold a column of bytes and a label `late`, as bytes or as text."""
    message = f"message Row {{ optional bytes {column} = 1; optional double late = 2; }}"
    row = record((column, nullable("bytes")), ("late", nullable("long")))
    typed = ({"name": "avro", "schema": json.dumps(row)}, proto(message))
    return {**{name: name for name in plain_formats(schema)}, **{str(each["name"]): each for each in typed}}


def json_bytes(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=len(str(value)) % 2 == 0).encode(errors="surrogatepass")


def msgpack_bytes(value: Any) -> bytes | None:
    """None of what msgpack cannot say."""
    try:
        packed: bytes = msgpack.packb(value, use_single_float=len(str(value)) % 2 == 0)
    except (OverflowError, UnicodeEncodeError):
        return None
    return packed


@st.composite
def jobs(draw: Callable[..., Any], most_rows: int = 4) -> DrawnJob:
    """Rows that mostly train, of one to four columns and a label."""
    drawn = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4))
    drawn = [kind for at, kind in enumerate(drawn) if kind not in ALONE or kind not in drawn[:at]]
    drawn = [kind for kind in drawn if kind != "moment" or "time" not in drawn]
    if draw(seldom):
        drawn = ["sparse"]  # all that lines of features hold
    target = draw(st.sampled_from(list(LABELS)))
    label, loss = LABELS[target]
    columns: dict[str, Any] = {}
    cells: dict[str, Cells] = {}
    fields: dict[str, tuple[str, str]] = {}
    kinds: dict[str, str] = {}
    for name, kind in zip("abcd", drawn, strict=False):
        sort = KINDS[kind]
        settings = _with_missing(draw, draw(sort.settings), sort)
        place = draw(st.sampled_from(["", "", "", "around", f"u.{name}", f"v[{'abcd'.index(name)}]"]))
        if place == "around" and kind in ("number", "decimal", "amount", "comma", "flag", "code", "category", "text"):
            source = draw(st.sampled_from(SOURCES))
            settings["from"] = source
            if kind == "number" and source in ("key", "headers.t"):
                settings["parse"] = "decimal"
        elif place not in ("", "around"):
            settings["path"] = place
        columns[name], cells[name], kinds[name] = settings, sort.cells, kind
        if sort.fields:
            fields[name] = draw(st.sampled_from(sort.fields))
    columns["late"] = {**_with_missing(draw, draw(label.settings), label), "role": "label"}
    cells["late"], kinds["late"] = label.cells, target
    fields["late"] = draw(st.sampled_from(label.fields))
    tables, where = _transforms(draw, columns, kinds)
    if not {*drawn} - {*ALONE} and not tables:
        columns["x"], cells["x"], kinds["x"], fields["x"] = {}, numbers, "number", DOUBLE
    in_rows = {
        name: st.one_of(*[of] * 6, st.none(), odd, missing) for name, of in cells.items() if "from" not in columns[name]
    }
    row = st.fixed_dictionaries({}, optional={"other": st.one_of(words, odd)})
    rows = draw(st.lists(st.tuples(st.fixed_dictionaries(in_rows), row).map(lambda two: {**two[0], **two[1]}),
                         min_size=1, max_size=most_rows))  # fmt: skip
    around = draw(st.sampled_from(AROUND)) if any("from" in column for column in columns.values()) else Around()
    own = draw(st.sampled_from([(), ("gone",)]))
    return DrawnJob(columns, loss, rows, tables, where, around, draw(seldom), fields, kinds, own)


def _with_missing(draw: Callable[..., Any], settings: dict[str, Any], sort: Sort) -> dict[str, Any]:
    choices = ["dead_letter", "skip"] + ([sort.stand_in] * 2 if sort.stand_in is not None else [])
    missing = draw(st.sampled_from(choices))
    return settings if missing == "dead_letter" else {**settings, "missing": missing}


def _transforms(
    draw: Callable[..., Any], columns: dict[str, Any], kinds: dict[str, str]
) -> tuple[dict[str, Any], str | None]:
    """Draws transforms of columns that are in the record."""
    known = {kind: [name for name in columns if kinds[name] == kind] for kind in ("number", "category")}
    tables = {}
    for at, (reads, make) in enumerate(TABLES):
        if all(known[kind] for kind in reads) and draw(st.booleans()):
            tables[f"t{at}"] = make(*(draw(st.sampled_from(known[kind])) for kind in reads))
    possible = [(kind, make) for kind, make in CONDITIONS if known[kind]]
    if not possible or not draw(st.booleans()):
        return tables, None
    kind, condition = draw(st.sampled_from(possible))
    return tables, condition(draw(st.sampled_from(known[kind])))


REFUSALS = (UserMistake, TypeError, ValueError, OverflowError)  # of slow encoders, which only tests and tools use


def accepted(encode: Callable[[list[Any]], Any], rows: list[dict[str, Any]]) -> tuple[list[int], Any]:
    """Returns the rows that a format's encoder takes together, and what it makes of them."""
    try:
        return [*range(len(rows))], encode(rows)
    except REFUSALS:
        pass
    good: list[int] = []
    result: Any = []
    for at in range(len(rows)):
        try:
            result = encode([rows[each] for each in (*good, at)])
        except REFUSALS:
            continue
        good.append(at)
    return good, result
