"""Kitchen sinks: one job on a real Kafka with many features at once.

Each feature adds lines to the job file and cells to the rows, and checks the job in the end. A sink trains twice: the
first run is killed as a whole, in the second one worker dies within a round and one between rounds. Then `verify` and
`replay` run, the dead letters must be exactly those expected, and a program and `predict` must answer alike.
Where a sink fails, halves of its features run again, and the error names those that it takes to fail.
"""

from __future__ import annotations

import itertools
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

import streamtrain
from streamtrain import Job, LiveModel, read_predictions
from streamtrain.clients.dead_letters import read_dead_letters
from streamtrain.clients.snapshot import Snapshot, snapshot_of
from streamtrain.columns.formats import encode_records
from tests.e2e.harness import LiveJob, Running, rows

Row = dict[str, Any]
Message = dict[str, Any]  # keywords of Producer.produce
KILLS = "worker.stepped=9,worker.averaging=3"
SIZES = (1, 40, 7, 16)  # rows a message
ASKED = 24
BASE = {
    "topics": "records = { partitions = 1 }",
    "records": 'format = "msgpack"\nmax_dead_letter_share = 0.9',
    "columns": '"x{1..4}" = { kind = "number", standardize = true }\n'
               'colour = { kind = "category", buckets = 16, embed = 4 }\ny = { role = "label" }',
    "model": "", "optimizer": "learning_rate = 3e-3",
    "train": 'batch_rows = 16\nbatch_growth = "off"\nworkers = 2\naveraging_frequency = 2\nround_interval = "off"',
    "publish": 'interval = "200ms"\nkeep = 8',
}  # fmt: skip


@dataclass(frozen=True)
class Place:
    """Where a row is: its own number and that of its message."""

    row: int
    message: int


@dataclass(frozen=True)
class Bad:
    """A copy of a good row with other cells, and the dead letter that it becomes."""

    cells: Row
    path: str  # how it ends
    reason: str  # a part of it


@dataclass(frozen=True)
class Raw:
    """A message of a feature's own, the rows trained of it, and (path, part of the reason) of each of its dead rows."""

    message: Message
    rows: Sequence[Row] = ()
    dead: Sequence[tuple[str, str]] = ()


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
    raw: Callable[[Sink], Sequence[Raw]] = lambda sink: ()
    before: Callable[[Sink], object] = lambda sink: None
    during: Callable[[Sink, Running], object] = lambda sink, first: None  # before the first run is killed
    check: Callable[[Sink], object] = lambda sink: None


def job_text(base: Mapping[str, str], features: Sequence[Feature], twin: bool = False) -> str:
    sections: dict[str, list[str]] = {}
    own = (each.twin if twin and each.twin is not None else each.job for each in features)
    for pieces in (base, *own):
        for section, lines in pieces.items():
            sections.setdefault(section, []).append(lines)
    if twin:
        sections = {**sections, "topics": [], "registry": [], "records": ['format = "msgpack"']}
    return "".join(f"[{section}]\n" + "\n".join([*lines, ""]) for section, lines in sections.items())


class Sink:
    """A job of several features, from its rows to its end."""

    def __init__(
        self, kafka: Any, folder: Path, features: Sequence[Feature], base: Mapping[str, str], count: int,
        sizes: Sequence[int], format: Any,
    ) -> None:  # fmt: skip
        self.features, self.base, self.folder, self.kafka = features, {**BASE, **base}, folder, kafka
        self.live = LiveJob(kafka, folder, "sink", job_text(self.base, features), partitions=1)
        self.format = format or self.live.job.records.named
        self.rows: list[Row] = []  # those that are trained, with all cells
        self.labels = {name for name, _ in self.live.job.schema.labels}
        self.asked: list[Row] = []
        self.requests: list[Message] = []  # with these rows
        self.expected: Counter[tuple[str, str]] = Counter()  # dead rows
        self.sizes = sizes
        self.messages = list(self._messages(count))

    def _messages(self, count: int) -> Iterator[Message]:
        bad = [each for feature in self.features for each in feature.bad]
        given, turns = rows(count), itertools.cycle(self.sizes)
        for number in itertools.count():
            held = [self.made(Place(len(self.rows) + at, number), row)
                    for at, row in enumerate(itertools.islice(given, next(turns)))]  # fmt: skip
            if not held:
                break
            if len(self.rows) < ASKED:
                self.requests += self.encoded([*map(self.without_labels, held)], number, asked=True)
                self.asked += map(self.without_labels, held)
            self.rows += held
            if bad and number % 3 == 2:
                spoilt = bad.pop()
                held.insert(len(held) // 2, {**held[0], **spoilt.cells})
                self.expected[spoilt.path, spoilt.reason] += 1
            yield from self.encoded(held, number)
        assert not bad, f"too few messages: {bad} found none"
        for raw in (raw for feature in self.features for raw in feature.raw(self)):
            self.rows += raw.rows
            self.expected.update(raw.dead)
            yield {"partition": 0, **raw.message}

    def made(self, place: Place, row: Row) -> Row:
        for feature in self.features:
            feature.cells(place, row)
        return row

    def without_labels(self, row: Row) -> Row:
        return {name: cell for name, cell in row.items() if name not in self.labels}

    def encoded(self, held: Sequence[Row], number: int, asked: bool = False) -> Iterator[Message]:
        schema, around = self.live.job.schema, {"partition": 0}
        apart = {name for name, column in schema.columns if column.around is not None}
        held = [{name: cell for name, cell in row.items() if name not in apart} for row in held]
        for feature in self.features:
            around |= feature.around(number)
            held = [*map(feature.wire, held)]
        for value in encode_records(self.format, schema.for_requests() if asked else schema, held):
            yield {**around, "value": value}

    def run(self) -> None:
        for feature in self.features:
            feature.before(self)
        half = len(self.messages) // 2
        self.live.produce_messages(self.messages[:half])
        first = self.live.start("train")
        try:
            first.wait_rows(64)
            for feature in self.features:
                feature.during(self, first)
        finally:
            first.process.send_signal(signal.SIGKILL)
            first.finish()
        self.live.produce_messages(self.messages[half:])
        self.events = self.live.train("--until-end", failpoints=KILLS)
        assert sum(event["event"] == "worker_died" for event in self.events) == 2, self.events
        dead = sum(self.expected.values())
        counts = {"trained": len(self.rows), "dead_lettered": dead, "filtered": 0}
        found = self.live.verified()["rows"]
        assert found == counts, f"{found}, expected {counts}"
        assert len(self.live.replayed()["snapshots"]) >= 1
        self._check_letters()
        self._check_bits()
        for feature in self.features:
            try:
                feature.check(self)
            except Exception as error:
                raise AssertionError(f"the check of {feature.name}: {error}") from error

    def _check_letters(self) -> None:
        found: Counter[tuple[str, str]] = Counter()
        for part in (part for each in read_dead_letters(Job.load(self.live.path)) for part in each.letter.rows):
            key = next((key for key in self.expected if part.path.endswith(key[0]) and key[1] in part.reason),
                       (part.path, part.reason))  # fmt: skip
            found[key] += part.row_to - part.row_from
        wrong = {key: (found[key], self.expected[key]) for key in found | self.expected if found[key] != self.expected[key]}
        assert not wrong, f"dead rows, found and expected: {wrong}"

    def _check_bits(self) -> None:
        """`fit` ends with the same bits; a program's rows and those of requests get the same answers."""
        own, its = self.newest.parameters, self.fitted.parameters
        assert own.keys() == its.keys()
        other = [name for name in own if own[name].tobytes() != its[name].tobytes()]
        assert not other, f"other bits than fit's: {other}"
        expected = self.fitted.predict(self.asked)
        assert len({*map(repr, expected)}) > 1
        asked = self.asked
        for feature in self.features:
            asked = [*map(feature.wire, asked)]
        with LiveModel(self.live.name, bootstrap=self.live.bootstrap) as model:
            model.wait_ready(60)
            assert model.predict(asked) == expected
            assert model.predict(asked[0]) == expected[0]
        self.live.produce_messages(self.requests, f"{self.live.name}.requests")
        done = self.live.here("predict", "--until-end")
        assert done.returncode == 0, done.stderr
        found = read_predictions(self.live.name, bootstrap=self.live.bootstrap, until_end=True)
        answers = [each for answer in found
                   for each in (answer.prediction if isinstance(answer.prediction, list) else [answer.prediction])]  # fmt: skip
        assert sorted(map(_rounded, answers)) == sorted(map(_rounded, expected)), answers[:2]

    # -- what checks read -----------------------------------------------------------------------------------------

    @cached_property
    def newest(self) -> Snapshot:
        return snapshot_of(self.live.newest())

    @property
    def total(self) -> dict[str, Any]:
        return self.newest.manifest.metrics["total"]

    @cached_property
    def fitted(self) -> Any:
        """The same rows in memory, by a plain job file."""
        head = 'name = "twin"\n[kafka]\nbootstrap.servers = "none"\n'
        return streamtrain.fit(Job.parse(head + job_text(self.base, self.features, twin=True)), self.rows)


def _rounded(answer: Any) -> str:
    """An answer whose numbers are float32, in a form that has an order."""
    if isinstance(answer, Mapping):
        return repr({name: _rounded(each) for name, each in sorted(answer.items())})
    return repr(float(np.float32(answer))) if isinstance(answer, float) else repr(answer)


def run_sink(
    kafka: Any, folder: Path, features: Sequence[Feature], *, base: Mapping[str, str] = MappingProxyType({}),
    count: int = 2_500, sizes: Sequence[int] = SIZES, format: Any = None,
    run: Callable[[Sequence[Feature]], object] | None = None,
) -> None:  # fmt: skip
    """Runs all features in one job; where that fails, finds out which of them it takes. `run` stands in for the job."""
    def run_once(chosen: Sequence[Feature]) -> None:
        Sink(kafka, folder, chosen, base, count, sizes, format).run()

    run = run or run_once
    try:
        run(features)
    except Exception as error:
        groups = guilty(features, run)
        named = "; ".join("only together: " * (len(group) > 1) + ", ".join(each.name for each in group) or "no feature"
                          for group in groups)  # fmt: skip
        raise AssertionError(f"the sink fails with {named}: {error}") from error


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
