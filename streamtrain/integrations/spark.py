"""Spark's rows from a job's topics and onto them, and its newest model in a query: the data source `streamtrain`.

Needs the extra `spark`. Spark moves rows, it trains nothing; a task is one process with clients of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

import pandas
from pyspark.sql import functions
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import DoubleType, LongType, MapType, StringType, StructField, StructType

from streamtrain.clients.arguments import address, job_name, job_of
from streamtrain.clients.live_model import LiveModel
from streamtrain.columns.kinds.kind import as_text
from streamtrain.errors import RecordError, UserMistake
from streamtrain.integrations.spark_reading import RangeReader, ReadSettings, StreamReader, spark_schema
from streamtrain.integrations.spark_writing import BatchWriter, EpochWriter, Target
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.error_codes import no_such_topic
from streamtrain.topics.topic import row_topics

_OPTIONS = {
    "job": None, "topic": "records", "errors": "raise", "offsets_per_task": "1000000", "offsets_per_trigger": "0",
    "start": "earliest", "pack": "256",
}  # fmt: skip
_WORDS = {"topic": tuple(row_topics()), "errors": ("raise", "leave_out"), "start": ("earliest", "latest")}
_WAIT_S = 60.0


class StreamtrainSource(DataSource):
    """`spark.dataSource.register(StreamtrainSource)`, then format("streamtrain") with options, all of them texts.

    job: the path of a job file, on the driver. topic: "records" or "requests". Read: errors ("raise", or "leave_out"
    for rows that cannot be used), offsets_per_task, and of a stream start ("earliest" or "latest") and
    offsets_per_trigger (0: all there is). Written: pack, rows in a record. UserMistake for others, and where the topic
    does not exist.
    """

    @classmethod
    def name(cls) -> str:
        return "streamtrain"

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        given = {name.lower(): value for name, value in dict(options).items()}
        if unknown := sorted(given.keys() - _OPTIONS.keys() - {"path", "checkpointlocation"}):
            raise UserMistake(f"option {unknown[0]}: expected one of {', '.join(_OPTIONS)}")
        self._given = {name: given.get(name, value) for name, value in _OPTIONS.items()}
        self._job = job_of('option("job", …)', self._given["job"])
        for name, words in _WORDS.items():
            if self._given[name] not in words:
                raise UserMistake(f"option {name}: expected {' or '.join(words)}, got {self._given[name]!r}")

    def schema(self) -> StructType:
        return spark_schema(self._read_settings().plan().parts)

    def reader(self, schema: StructType) -> RangeReader:
        return RangeReader(self._read_settings())

    def streamReader(self, schema: StructType) -> StreamReader:
        return StreamReader(self._read_settings())

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        if overwrite:
            raise UserMistake('mode: expected "append", a topic is not overwritten')
        return BatchWriter(self._target())

    def streamWriter(self, schema: StructType, overwrite: bool) -> EpochWriter:
        return EpochWriter(self._target())

    def _number(self, name: str, least: int) -> int:
        text = str(self._given[name])
        if not text.isdecimal() or int(text) < least:
            raise UserMistake(f"option {name}: expected a whole number from {least}, got {text!r}")
        return int(text)

    def _topic(self) -> str:
        return str(self._job.topic(str(self._given["topic"])).name)

    def _read_settings(self) -> ReadSettings:
        return ReadSettings(
            self._job, self._topic(), self._given["topic"] == "requests", str(self._given["errors"]),
            self._number("offsets_per_task", 1), self._number("offsets_per_trigger", 0), str(self._given["start"]),
        )  # fmt: skip

    def _target(self) -> Target:
        topic, bootstrap = self._topic(), self._job.kafka.bootstrap
        if Admin(bootstrap, self._job.kafka_admin()).describe([topic])[topic] is None:
            raise no_such_topic(topic, bootstrap)  # a producer would wait for it
        return Target(self._job, str(self._given["topic"]), topic, self._number("pack", 1))


# -- prediction -------------------------------------------------------------------------------------------------------

ANSWER = StructType([
    StructField("prediction", DoubleType()),
    StructField("class", StringType()),
    StructField("probabilities", MapType(StringType(), DoubleType())),
    StructField("version", LongType()),
    StructField("error", StringType()),
])  # fmt: skip
_models: dict[tuple[Any, ...], LiveModel] = {}  # of this worker process
_making = threading.Lock()


def predictor(job: str, bootstrap: str, kafka: Mapping[str, str] | None = None) -> Any:
    """A function of a struct of columns that gives ANSWER: `frame.select(predictor("flights", address)(struct("*")))`.

    A number is in `prediction`, a class in `class` with all `probabilities`; of a row that cannot be predicted `error`
    alone. Each worker process of Spark follows the job's snapshots in the background; the rows of one batch of Arrow
    are one snapshot's. Waits a minute for the first.
    """
    key = (job_name("predictor", job), address("predictor", bootstrap), tuple(sorted((kafka or {}).items())))

    def predicted(batches: Iterator[pandas.DataFrame]) -> Iterator[pandas.DataFrame]:
        model = _model(key)
        for frame in batches:
            answers = model.answer(frame, errors="return")
            rows = [_to_row(each, answers.version) for each in answers.values]
            yield pandas.DataFrame(rows, columns=ANSWER.fieldNames())

    predicted.__annotations__ = {"batches": Iterator[pandas.DataFrame], "return": Iterator[pandas.DataFrame]}
    return functions.pandas_udf(predicted, ANSWER)


def _model(key: tuple[Any, ...]) -> LiveModel:
    job, bootstrap, kafka = key
    with _making:
        if key not in _models:
            _models[key] = LiveModel(job, bootstrap, dict(kafka))
    _models[key].wait_ready(_WAIT_S)
    return _models[key]


def _to_row(answer: Any, version: int) -> tuple[Any, ...]:
    if isinstance(answer, RecordError):
        return None, None, None, version, str(answer)
    value = answer["prediction"]
    if isinstance(value, dict):
        raise UserMistake(
            f"predictor: expected a model of one head, got {', '.join(value)}; predict with a LiveModel in a function "
            "of your own"
        )
    shares = answer.get("probabilities")
    number, name = (float(value), None) if shares is None else (None, as_text(value))
    return number, name, shares, version, None
