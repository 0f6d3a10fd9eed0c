"""Kitchen sinks: one job on a real Kafka with many features at once, each with lines, cells and checks of its own.

A sink trains twice: the first run is killed as a whole, in the second workers die within and between rounds. Then
`verify` and `replay` run, the dead letters must be those expected, and `fit` must end with the same bits and answers.
Where a sink fails, halves of its features run again, and the error names those that it takes to fail.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import streamtrain
from streamtrain import Job, read_predictions
from streamtrain.clients.dead_letters import read_dead_letters
from streamtrain.clients.snapshot_arrays import Snapshot, snapshot_of
from tests.e2e.harness import LiveJob, Running, rows
from tests.oracles.records import encode_records

KILLS = "worker.stepped=9,worker.averaging=3"
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
Encode = Callable[["Sink", Sequence[Row], int, bool], Iterable[Message]]


@dataclass(frozen=True)
class Place:
    """The place of a row: its own number and that of its message."""

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
    """The lines, cells and messages that one thing under test adds to a sink, and what must hold of it."""

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


def encode(sink: Sink, message_rows: Sequence[Row], number: int, is_request: bool) -> Iterator[Message]:
    """Messages of these rows by the job's own format."""
    schema = sink.live.job.schema.for_requests() if is_request else sink.live.job.schema
    yield from ({"value": value} for value in encode_records(sink.live.job.records.named, schema, message_rows))


@dataclass(frozen=True)
class Plan:
    """The job file, rows and messages of a sink."""

    base: Mapping[str, str] = field(default_factory=dict)  # sections in the place of BASE's
    twin: Mapping[str, str] = field(default_factory=dict)  # the same for `fit`
    count: int = 2_500  # rows
    sizes: Sequence[int] = (1, 40, 7, 16)  # rows a message
    encode: Encode = encode
    once: bool = False  # one start: the coordinator dies within the commit of all rows, and so the whole run
    request_rows: int = 24  # rows of requests
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


class Sink:
    """A job of several features, from its rows to its end."""

    def __init__(self, kafka: Any, folder: Path, features: Sequence[Feature], plan: Plan) -> None:
        self.features, self.folder, self.plan = features, folder, plan
        self.live = LiveJob(kafka, folder, "sink", plan.job(features), partitions=1)
        schema = self.live.job.schema
        self.labels = {name for name, _ in schema.labels}
        self.apart = {name for name, column in schema.columns if column.around is not None}
        self.rows: list[Row] = []  # sent so far and to be trained, with all cells
        self.row_count = self.sent = self.left_out = 0  # rows; messages; rows of batches that are left out
        self.request_rows: list[Row] = []
        self.requests: list[Message] = []  # with these rows
        self.expected: Counter[tuple[str, str]] = Counter()  # dead rows
        self.planned = list(self._planned())

    def _planned(self) -> Iterator[Sent]:
        bad = [each for feature in self.features for each in feature.bad]
        given, sizes = rows(self.plan.count), itertools.cycle(self.plan.sizes)
        for number in itertools.count():
            if not (message_rows := self.filled(itertools.islice(given, next(sizes)), number)):
                break
            if len(self.request_rows) < self.plan.request_rows:
                request_rows = [self.without_labels(row) for row in message_rows]
                self.requests += self.encoded(request_rows, number, is_request=True)
                self.request_rows += request_rows
            one = bad.pop() if bad and number % 3 == 2 else None
            spoilt = [{**message_rows[0], **one.cells}] if one else []
            messages = list(self.encoded([*message_rows[:2], *spoilt, *message_rows[2:]], number))
            yield from (Sent(message) for message in messages[:-1])
            yield Sent(messages[-1], message_rows, [(one.path, one.reason)] if one else [])
        assert not bad, f"too few messages for {bad}"

    def filled(self, given: Iterable[Row], number: int) -> list[Row]:
        """Rows with all features' cells, for the message of that number."""
        message_rows = list(given)
        for row, feature in itertools.product(message_rows, self.features):
            feature.cells(Place(self.row_count, number), row)
            self.row_count += feature is self.features[-1]
        return message_rows

    def without_labels(self, row: Row) -> Row:
        return {name: cell for name, cell in row.items() if name not in self.labels}

    def unlabelled(self) -> int:
        return sum(all(row.get(name) is None for name in self.labels) for row in self.rows)

    def wired(self, row: Row) -> Row:
        for feature in self.features:
            row = feature.wire(row)
        return row

    def encoded(self, message_rows: Sequence[Row], number: int = 0, is_request: bool = False) -> Iterator[Message]:
        around: Message = {"partition": 0}
        for feature in self.features:
            around |= feature.around(number)
        message_rows = [{name: cell for name, cell in row.items() if name not in self.apart} for row in message_rows]
        for message in self.plan.encode(self, [*map(self.wired, message_rows)], number, is_request):
            yield {**around, **message}

    def send(self, sent: Sequence[Sent]) -> None:
        for each in sent:
            self.rows += each.rows
            self.expected.update(each.dead)
            self.left_out += each.left_out
        self.sent += len(sent)
        self.live.produce_messages({"partition": 0, **each.message} for each in sent)

    def run(self) -> None:
        half = 0 if self.plan.once else len(self.planned) // 2
        for feature in self.features:
            feature.before(self)
        if half:
            self._first(half)
        self.send(self.planned[half:])
        for feature in self.features:
            feature.then(self)
        kills = f"{KILLS},coordinator.in_commit=3" if self.plan.once else KILLS
        events = self.live.train("--until-end", failpoints=kills)
        happened = {event["event"] for event in events}
        assert {event["how"] for event in events if event["event"] == "worker_died"} == {"SIGKILL"}  # by these alone
        assert happened >= {"worker_died", *(["restarting"] if self.plan.once else [])}, happened
        with ExitStack() as opened:
            for feature in self.features:
                opened.enter_context(feature.verifying(self))
            dead, filtered = self.expected.total(), self.unlabelled()
            trained = len(self.rows) - self.left_out - filtered
            counts = {"trained": trained, "dead_lettered": dead, "filtered": filtered}
            found = self.live.verified()["rows"]
            assert found == counts, f"{found}, expected {counts}"
            assert len(self.live.replayed()["snapshots"]) >= 1
        self._check_letters()
        if self.plan.fits:
            self._check_bits()
        for feature in self.features:
            feature.check(self)

    def _first(self, half: int) -> None:
        self.send(self.planned[:half])
        first = self.live.start("train")
        try:
            first.wait_rows(64)
            for feature in self.features:
                feature.during(self, first)
        finally:
            first.process.kill()
            first.finish()

    def _check_letters(self) -> None:
        found: Counter[tuple[str, str]] = Counter()
        for letter in (each.letter for each in read_dead_letters(Job.load(self.live.path))):
            for part in letter.rows:
                key = next((key for key in self.expected if key[0] in part.path and key[1] in part.reason),
                           (part.path, part.reason))  # fmt: skip
                found[key] += part.row_to - part.row_from
            found[key] += letter.rows_left_out
        wrong = [(*key, found[key], self.expected[key]) for key in found | self.expected
                 if found[key] != self.expected[key]]  # fmt: skip
        assert not wrong, f"dead rows, found and expected: {wrong[:9]}"

    def _check_bits(self) -> None:
        """`fit` ends with the same bits; a program's rows and those of requests get the same answers."""
        own, its = self.newest.parameters, self.fitted.parameters
        assert own.keys() == its.keys()
        other = [name for name in own if own[name].tobytes() != its[name].tobytes()]
        assert not other, f"other bits than fit's: {other}"
        fitted = self.fitted.manifest.metrics["total"]
        assert self.total == fitted, f"other figures than fit's: {self.total}, {fitted}"
        expected = self.fitted.predict(self.request_rows)
        assert len({*map(repr, expected)}) > 1
        rows = [*map(self.wired, self.request_rows)]
        with self.live.model() as model:
            assert model.predict(rows) == expected
            assert model.predict(rows[0]) == expected[0]
            alike = [row for row in rows if row.keys() == rows[-1].keys()]
            if rows == self.request_rows:
                assert model.predict({name: [row[name] for row in alike] for name in alike[0]}) == model.predict(alike)
        self.live.produce_messages(self.requests, f"{self.live.name}.requests")
        done = self.live.here("predict", "--until-end")
        assert done.returncode == 0, done.stderr
        found = read_predictions(self.live.name, bootstrap=self.live.bootstrap, until_end=True)
        answers = [each for one in (answer.prediction for answer in found)
                   for each in (one if isinstance(one, list) else [one])]  # fmt: skip
        assert sorted(map(rounded, answers)) == sorted(map(rounded, expected)), answers[:2]

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
        return streamtrain.fit(Job.parse(head + self.plan.job(self.features, twin=True)), self.rows)


def run_sink(
    kafka: Any, folder: Path, features: Sequence[Feature], plan: Plan | None = None,
    run: Callable[[Sequence[Feature]], object] | None = None,
) -> None:  # fmt: skip
    """Runs all features in one job; where that fails, finds out which of them it takes. `run` stands in for the job."""
    run = run or (lambda chosen: Sink(kafka, folder, chosen, plan or Plan()).run())
    try:
        run(features)
    except Exception as error:
        named = ["only together: " * (len(group) > 1) + ", ".join(each.name for each in group) or "no feature"
                 for group in guilty(features, run)]  # fmt: skip
        raise AssertionError(f"the sink fails with {'; '.join(named)}: {error or type(error)}") from error


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
