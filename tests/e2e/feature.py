"""Features of a sink (tests/e2e/sink.py), and how a sink is made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from streamtrain.columns.formats import encode_records
from tests.e2e.harness import Running

Sink = Any  # that of tests/e2e/sink.py, which imports this file
Row = dict[str, Any]
Message = dict[str, Any]  # keywords of Producer.produce
BASE = {
    "topics": "records = { partitions = 1 }",
    "records": 'format = "msgpack"\nmax_dead_letter_share = 0.9',
    "columns": '"x{1..4}" = { kind = "number", standardize = true }\n'
               'colour = { kind = "category", buckets = 16, embed = 4 }\ny = { role = "label" }',
    "model": "", "optimizer": "learning_rate = 3e-3",
    "train": 'batch_rows = 16\nbatch_growth = "off"\nworkers = 2\naveraging_frequency = 2\nround_interval = "off"',
    "publish": 'interval = "200ms"\nkeep = 8',
}  # fmt: skip
TWIN = {"records": 'format = "msgpack"'}  # of the job file for `fit`
Encode = Callable[[Sink, Sequence[Row], int, bool], Iterable[Message]]


@dataclass(frozen=True)
class Place:
    """Where a row is: its own number and that of its message."""

    row: int
    message: int


@dataclass(frozen=True)
class Bad:
    """A copy of a good row with other cells, and the dead letter that it becomes."""

    cells: Row
    path: str  # a part of it
    reason: str  # a part of it


@dataclass(frozen=True)
class Sent:
    """A message, the rows that are trained of it, and (part of the path, part of the reason) of each dead one."""

    message: Message
    rows: Sequence[Row] = ()
    dead: Sequence[tuple[str, str]] = ()
    left_out: int = 0  # of `rows`, with the batch of a bad one


@dataclass(frozen=True)
class Feature:
    """What one thing under test adds to a sink, and what must hold of it."""

    name: str
    job: Mapping[str, str] = field(default_factory=dict)  # lines by section of the job file
    twin: Mapping[str, str] | None = None  # the same for `fit`, which gets the rows as `cells` leaves them
    cells: Callable[[Place, Row], object] = lambda place, row: None
    wire: Callable[[Row], Row] = lambda row: row  # a row as a record holds it
    around: Callable[[int], Message] = lambda message: {}  # what stands around the message of that number
    bad: Sequence[Bad] = ()
    before: Callable[[Sink], object] = lambda sink: None
    during: Callable[[Sink, Running], object] = lambda sink, first: None  # before the first run is killed
    then: Callable[[Sink], object] = lambda sink: None  # before the second run; what both send, they `send`
    verifying: Callable[[Sink], AbstractContextManager[object]] = lambda sink: nullcontext()
    check: Callable[[Sink], object] = lambda sink: None


def encode(sink: Sink, held: Sequence[Row], number: int, asked: bool) -> Iterator[Message]:
    """Messages of these rows by the job's own format."""
    schema = sink.live.job.schema.for_requests() if asked else sink.live.job.schema
    yield from ({"value": value} for value in encode_records(sink.live.job.records.named, schema, held))


@dataclass(frozen=True)
class Plan:
    """How a sink is made."""

    base: Mapping[str, str] = field(default_factory=dict)  # sections in the place of BASE's
    twin: Mapping[str, str] = field(default_factory=dict)  # the same for `fit`
    count: int = 2_500  # rows
    sizes: Sequence[int] = (1, 40, 7, 16)  # rows a message
    encode: Encode = encode
    once: bool = False  # one start: the coordinator dies within the commit of all rows, and so the whole run
    asked: int = 24  # rows of requests
    fits: bool = True  # the rows are such as a program gives, to `fit` and for answers

    def job(self, features: Sequence[Feature], twin: bool = False) -> str:
        """The job file behind its head."""
        own = {**BASE, **self.base, **({**TWIN, **self.twin} if twin else {})}
        sections = {name: [lines] for name, lines in own.items()}
        sections |= {"publish": ['interval = "1h"']} if self.once else {}
        for pieces in (each.twin if twin and each.twin is not None else each.job for each in features):
            for name, lines in pieces.items():
                sections.setdefault(name, []).append(lines)
        if twin:
            sections.pop("registry", None)
        return "".join(f"[{name}]\n" + "\n".join([*lines, ""]) for name, lines in sections.items())


def rounded(answer: Any) -> str:
    """An answer whose numbers are float32, in a form that has an order."""
    if isinstance(answer, Mapping):
        return repr({name: rounded(each) for name, each in sorted(answer.items())})
    return repr(float(np.float32(answer))) if isinstance(answer, float) else repr(answer)


def guilty(features: Sequence[Feature], run: Callable[[Sequence[Feature]], object]) -> list[Sequence[Feature]]:
    """The smallest groups, of those made by halving, that fail on their own; [] stands for a job of no feature."""
    def fails(chosen: Sequence[Feature]) -> bool:
        try:
            run(chosen)
        except Exception:
            return True
        return False

    def within(failing: Sequence[Feature]) -> list[Sequence[Feature]]:
        middle = len(failing) // 2
        halves = [half for half in (failing[:middle], failing[middle:]) if half and len(failing) > 1 and fails(half)]
        return [group for half in halves for group in within(half)] or [failing]

    if fails(()):
        return [()]
    found, left = within(features), features
    while left := [each for each in left if not any(each in group for group in found)]:
        if not fails(left):
            break
        found += within(left)
    return found
