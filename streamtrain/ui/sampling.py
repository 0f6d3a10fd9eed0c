"""A sample of a job's records at both ends of what its topic keeps: at most ROWS rows at each end, decoded here.

Also reads its newest dead letters. Threads of their own do the reading: a page polls and shows what there is.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import numpy as np

from streamtrain import _native
from streamtrain.analysis.summary import Summary
from streamtrain.background import in_background
from streamtrain.clients.dead_letters import Found, Stray, letter_at, read_dead_letters
from streamtrain.columns.formats import Format
from streamtrain.columns.rows import record_rows
from streamtrain.compute import snapshot
from streamtrain.errors import UserMistake
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import KafkaConsumer, Message
from streamtrain.kafka.error_codes import no_such_topic
from streamtrain.kafka.reader import read
from streamtrain.kafka.settings import Purpose
from streamtrain.record_sources.source_kind import source_of
from streamtrain.schemas import job_format
from streamtrain.ui.followed_job import Following

ROWS = 10_000  # at each end
NAMED_ROWS = 2_000  # of these, whose texts are counted by name
LETTERS = 50  # of a partition
MAX_VALUES = 5  # values of a column
MODEL_BYTES = 256 * 2**20  # of a snapshot that is fetched for the moments of its columns
_STANDARDIZED = "standardize.numbers"
Span = tuple[int, int]  # of offsets
Limits = Mapping[str, tuple[float, float]]  # between which a standardised column is seen as it is
T = TypeVar("T")


class Values(NamedTuple):
    """The most frequent texts of a column, with their counts in `rows` rows."""

    rows: int
    counts: Sequence[tuple[str, int]]


class Letters(NamedTuple):
    newest: Sequence[Found]
    strays: int  # among them, what is none of ours


@dataclass(frozen=True)
class Window:
    """`spans`: offsets by partition; `columns`: as analysis.Summary tells them; `clipped`: shares of what is there."""

    rows: int
    unusable: int
    spans: Sequence[Span]
    columns: Mapping[str, Mapping[str, Any]]
    clipped: Mapping[str, float]
    values: Mapping[str, Values]


@dataclass(frozen=True)
class Sample:
    """`halved`: the two windows are all that the topic keeps, half and half."""

    at_s: float  # Unix time
    topic: str
    first: Window
    last: Window
    halved: bool
    clip_version: int | None  # of the snapshot that says what is clipped


class Sampling:
    """Samples the data of a followed job; it only reads."""

    stays = False

    def __init__(self, following: Following) -> None:
        self._following = following
        self._futures: dict[str, Future[Any]] = {}

    def close(self) -> None:
        """Leaves running reads behind; it does not wait for them."""

    def sample(self) -> Future[Sample]:
        return self._ask("sample", lambda: sampled(self._job(), self._following))

    def letters(self) -> Future[Letters]:
        """The newest dead letters, the newest first."""
        return self._ask("letters", lambda: _letters(self._job()))

    def letter(self, place: str) -> Future[Found]:
        return self._ask(f"letter {place}", lambda: letter_at(self._job(), place))

    def renew(self) -> None:
        """Forgets finished reads, so that the next request reads again."""
        self._futures = {name: found for name, found in self._futures.items() if not found.done()}

    def _ask(self, name: str, call: Callable[[], T]) -> Future[T]:
        if name not in self._futures:
            self._futures[name] = in_background(call, name=f"ui-data-{self._following.name}")
        return self._futures[name]

    def _job(self) -> Job:
        job = self._following.job
        if job is None:
            raise UserMistake(f"{self._following.name}: its columns are not known before it has a snapshot")
        return job


def _letters(job: Job) -> Letters:
    strays: list[Stray] = []
    found = list(read_dead_letters(job, newest=LETTERS, on_stray=strays.append))
    return Letters(sorted(found, key=lambda each: -each.timestamp_ms)[:LETTERS], len(strays))


def sampled(job: Job, following: Following) -> Sample:
    """Raises UserMistake where the rows are none of a topic, KafkaUnreachable where Kafka does not answer."""
    manifest = following.manifest
    if manifest is not None and (place := source_of(manifest.positions.topic_id).off_topic):
        how = "see them with `streamtrain analyze JOB.toml --input`"
        raise UserMistake(f"{job.name}: its rows come from {place}; {how}")
    topic = str(job.topic("records").name)
    spans = Admin(job.kafka.bootstrap, job.kafka_admin()).spans(topic)
    if spans is None:
        raise no_such_topic(topic, job.kafka.bootstrap)
    limits, version = _limits(job, following)
    with KafkaConsumer.open(Purpose.READ, job.kafka_consumer()) as consumer:
        ends, halved = _ends(job, consumer, topic, spans)
        windows = [Ending(job, consumer, topic, each) for each in ends]
        first, last = windows[0].window(limits, None), windows[1].window(limits, windows[0])
    return Sample(time.time(), topic, first, last, halved, version)


def _ends(job: Job, consumer: KafkaConsumer, topic: str, spans: Sequence[Span]) -> tuple[list[list[Span]], bool]:
    """Offsets by partition of the oldest and of the newest records; whether that is all there is, in halves."""
    first, last, halved = [], [], False
    nonempty = [span for span in spans if span[0] < span[1]]
    for number, (low, end) in enumerate(spans):
        message = next(read(consumer, topic, number, low, end, 1), None) if low < end else None
        in_record = 1 if message is None else max(1, len(_rows(job, job_format(job), message)))
        records = max(1, ROWS // max(1, len(nonempty)) // in_record)
        if end - low < 2 * records:
            halved, records = True, (end - low + 1) // 2
        first.append((low, min(end, low + records)))
        last.append((max(low + records, end - records), end))
    return [first, last], halved


def _rows(job: Job, format: Format, message: Message) -> list[Any]:
    return record_rows(job.schema, format, bytes(message.value or b""), message.headers).rows


class Ending:
    """Records of a stretch of offsets in each partition."""

    def __init__(self, job: Job, consumer: KafkaConsumer, topic: str, spans: Sequence[Span]) -> None:
        self._job, self._format, self._spans = job, job_format(job), spans
        self.summary = Summary(job)
        self._counts: dict[str, Counter[str]] = {name: Counter() for name in _texts(job)}
        self._named = 0
        share = ROWS // max(1, sum(low < end for low, end in spans))
        for number, (low, end) in enumerate(spans):
            before = self.summary.rows + self.summary.unusable
            messages = self._seen(read(consumer, topic, number, low, end), share)
            for _ in self.summary.add((message.value or b"", message.around()) for message in messages):
                if self.summary.rows + self.summary.unusable - before >= share:
                    break

    def _seen(self, messages: Iterator[Message], share: int) -> Iterator[Message]:
        """The messages that hold rows; texts of the first rows are counted on the way."""
        until = self._named + NAMED_ROWS * share // ROWS
        for message in messages:
            if message.value is None:
                continue
            if self._counts and self._named < until:
                rows = [row for row in _rows(self._job, self._format, message) if isinstance(row, dict)]
                for row in islice(rows, until - self._named):
                    self._named += 1
                    for name, counter in self._counts.items():
                        counter[str(row.get(name, ""))] += 1
            yield message

    def window(self, limits: Limits, against: Ending | None) -> Window:
        document = self.summary.document(None if against is None else against.summary)
        clipped = {}
        for name, (low, high) in limits.items():
            spread = self.summary.columns[name].spread
            below, within, above = spread.histogram(np.array([low, high])).tolist()
            clipped[name] = (below + above) / max(1, below + within + above)
        values = {name: Values(self._named, counter.most_common(MAX_VALUES)) for name, counter in self._counts.items()}
        return Window(document["rows"], document["unusable_rows"], self._spans, document["columns"], clipped, values)


def _texts(job: Job) -> list[str]:
    """Columns whose cells are single texts, at the top of a row."""
    return [
        name for name, column in job.schema.columns
        if job.schema.is_decoded(name, column) and name not in job.schema.paths and column.around is None
        and column.kind == "category" and not column.list and column.size is None
    ]  # fmt: skip


def _limits(job: Job, following: Following) -> tuple[Limits, int | None]:
    """Returns the limits at which the newest snapshot clips columns, as its standardizing op has them, and its version.

    Returns no limits and None if there is no usable snapshot.
    """
    with following.snapshots as topic:
        newest = topic.newest_manifest()
        if newest is None or newest.manifest.untrained or newest.manifest.model.size > MODEL_BYTES:
            return {}, None
        arrays = snapshot.decode(topic.load(newest, trainer=False).model)
    moments = arrays.get(_STANDARDIZED)
    names = [name for name in job.schema.numbers if name in dict(job.schema.columns)]
    if moments is None or len(moments) != len(job.schema.numbers):
        return {}, None
    columns, chosen = len(moments), np.ones(len(moments), np.uint8)
    mean, low, high = np.zeros((3, columns))
    scale, clip = np.zeros((2, columns), np.float32)
    _native.call_kernel("standardize_scale", "double", [columns, moments, chosen, mean, scale, clip, low, high])
    found = {}
    for at, name in enumerate(job.schema.numbers):
        if name in names and np.isfinite(clip[at]) and name in Summary(job).columns:
            found[name] = (float(mean[at] - clip[at] / scale[at]), float(mean[at] + clip[at] / scale[at]))
    return found, newest.manifest.version
