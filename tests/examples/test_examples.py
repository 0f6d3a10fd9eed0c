"""The job files of examples/ over the data they name: how well they learn; the same bits from a file and from Kafka.

The data lies in the folder that STREAMTRAIN_DATA names, or in ../shared/data beside the checkout; flights are those of
the extra `demo`.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

import streamtrain
from streamtrain import Job
from streamtrain.cli import main
from streamtrain.demo.flights import data_file
from streamtrain.errors import UserMistake
from streamtrain.kafka.admin import Admin
from streamtrain.topics.topic import job_topics
from tests.bench.learning_streams import DATA
from tests.e2e.harness import LiveJob
from tests.fitting.example import same_bits

pytestmark = pytest.mark.full

EXAMPLES = Path(__file__).parents[2] / "examples"
ROWS = 1_500  # through Kafka
Written = Callable[[Path], None]


def adult(path: Path) -> None:
    path.write_bytes((DATA / "adult/adult.csv").read_bytes())


def elec2(path: Path) -> None:
    path.write_bytes((DATA / "elec2/elec.csv").read_bytes())


def nsl_kdd(path: Path) -> None:
    path.write_bytes((EXAMPLES / "nsl_kdd.header").read_bytes()
                     + (DATA / "nsl_kdd/KDDTrain+_20Percent.txt").read_bytes())  # fmt: skip


def rcv1(path: Path) -> None:
    path.write_bytes((DATA / "rcv1/rcv1_small.dat").read_bytes())


def cifar10(path: Path) -> None:
    pytest.importorskip("cv2")
    archive = DATA / "cifar10_jpeg/train.tar"
    if not archive.exists():
        raise FileNotFoundError(archive)
    with path.open("wb") as out:
        subprocess.run([sys.executable, str(EXAMPLES / "cifar10.py"), str(archive)], stdout=out, check=True)


def flights(path: Path) -> None:
    with zipfile.ZipFile(data_file()) as archive:
        path.write_bytes(archive.read(archive.namelist()[0]))


def flights_with_torch(path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")
    flights(path)


# data, the file's end, and the most that errors and log loss may be of all rows, each predicted before it is learned
EVERY: dict[str, tuple[Written, str, float, float]] = {
    "adult": (adult, ".csv", 0.150, 0.317),
    "elec2": (elec2, ".csv", 0.196, 0.426),
    "nsl_kdd": (nsl_kdd, ".csv", 0.017, 0.045),
    "rcv1": (rcv1, ".vw", 0.160, 0.375),
    "cifar10": (cifar10, ".jsonl", 0.690, 1.880),
    "flights": (flights, ".csv", 0.098, 0.264),
    "flights_avro": (flights, ".csv", 0.098, 0.264),
    "flights_deepfm": (flights, ".csv", 0.098, 0.264),
    "flights_deepfm_torch": (flights_with_torch, ".csv", 0.098, 0.264),
    "flights_dcn": (flights, ".csv", 0.098, 0.263),
}


# and of a number, the most that the mean squared error may be; VW's own default has 0.502
NUMBERS: dict[str, tuple[Written, str, float]] = {"rcv1_squared": (rcv1, ".vw", 0.527)}


def written(name: str, folder: Path, rows: int | None = None) -> Path:
    """Its data as the file that its job file tells of; skips where it is not there."""
    write, end, *_ = {**EVERY, **NUMBERS}[name]
    path = folder / f"{name}{end}"
    try:
        write(path)
    except (OSError, UserMistake) as error:
        pytest.skip(f"no data of {name}: {error}")
    if rows is not None:
        lines = list(islice(path.read_bytes().splitlines(keepends=True), rows + (end == ".csv")))
        path.write_bytes(b"".join(lines))
    return path


def test_every_job_file_is_tried() -> None:
    names = EVERY.keys() | NUMBERS.keys()
    assert {path.stem for path in EXAMPLES.glob("*.toml")} == names
    told = (EXAMPLES / "README.md").read_text()
    assert all(f"`{name}.toml`" in told for name in names)


def test_the_two_ways_of_flights_are_one_declaration() -> None:
    one, other = (Job.without_kafka(EXAMPLES / f"{name}.toml") for name in ("flights", "flights_avro"))
    assert one.schema.digest() == other.schema.digest() and one.model_spec() == other.model_spec()


@pytest.mark.parametrize("name", EVERY)
def test_it_learns(name: str, tmp_path: Path) -> None:
    path, (*_, most_wrong, most_loss) = written(name, tmp_path), EVERY[name]
    fitted = streamtrain.fit(EXAMPLES / f"{name}.toml", files=path)
    figures, counts = fitted.manifest.metrics["total"], fitted.manifest.counts
    assert counts.dead == 0 and figures["rows"] == fitted.manifest.rows_seen
    assert 1 - figures["accuracy"] <= most_wrong and figures["log_loss"] <= most_loss, figures


@pytest.mark.parametrize("name", NUMBERS)
def test_it_learns_a_number(name: str, tmp_path: Path) -> None:
    path, (*_, most) = written(name, tmp_path), NUMBERS[name]
    fitted = streamtrain.fit(EXAMPLES / f"{name}.toml", files=path)
    figures = fitted.manifest.metrics["total"]
    assert fitted.manifest.counts.dead == 0 and figures["rows"] == fitted.manifest.rows_seen
    assert figures["loss"] <= most, figures


def test_attacks_of_other_kinds(tmp_path: Path) -> None:
    """Of NSL-KDD's test file, three in ten of whose attacks are of kinds that those learned from do not have."""
    fitted = streamtrain.fit(EXAMPLES / "nsl_kdd.toml", files=written("nsl_kdd", tmp_path))
    header = (EXAMPLES / "nsl_kdd.header").read_text().strip().split(",")
    tests = DATA / "nsl_kdd/KDDTest+.txt"
    columns = dict(zip(header, zip(*csv.reader(tests.read_text().splitlines()), strict=True), strict=True))
    is_attack = np.array(columns.pop("attack")) != "normal"
    texts = {"protocol_type", "service", "flag"}
    rows = {name: np.array(cells, None if name in texts else float) for name, cells in columns.items()}
    told = np.array([answer["prediction"] for answer in fitted.predict(rows)])
    assert ((told >= 0.5) == is_attack).mean() >= 0.77


def live(name: str, kafka: Any, folder: Path, registry: Callable[[], Any]) -> LiveJob:
    """The job file under a name of its own, on the tests' Kafka."""
    text = (EXAMPLES / f"{name}.toml").read_text()
    found = LiveJob.__new__(LiveJob)
    found.name, found.bootstrap = kafka.fresh_name(name), kafka.bootstrap
    text = text.replace(f'name = "{name}"', f'name = "{found.name}"').replace("localhost:9092", kafka.bootstrap)
    if "[registry]" in text:
        schema, url = (EXAMPLES / "flights.avsc").read_text(), registry().url
        text = text.replace("http://localhost:8081", url)
        (folder / "flights.avsc").write_text(schema)
        # the first answer of a registry that has just started may take longer than a writer waits
        SchemaRegistryClient({"url": url, "timeout": 60}).register_schema("warm", Schema(schema, "AVRO"))
    found.path = folder / f"{found.name}.toml"
    found.path.write_text(text)
    for module in EXAMPLES.glob("deepfm.py"):
        (folder / module.name).write_text(module.read_text())
    found.job = Job.load(found.path)
    topics = {key: value.model_dump(exclude_none=True) for key, value in found.job.file.topics.items()}
    Admin(found.bootstrap).ensure(job_topics(found.name, topics))
    return found


def alike(name: str) -> Path:
    """The job file of the same declaration, for another format."""
    return EXAMPLES / f"{name.removesuffix('_avro')}.toml"


@pytest.mark.parametrize("name", EVERY)
def test_the_same_bits_from_a_file_and_from_kafka(
    name: str, kafka: Any, tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(name, tmp_path, ROWS)
    job = live(name, kafka, tmp_path, lambda: request.getfixturevalue("registry"))
    with pytest.raises(SystemExit) as ended:
        main(["produce", str(job.path), "--input", str(path), "--pack", "7", "--json"])
    assert ended.value.code == 0
    produced = json.loads(capsys.readouterr().out)["rows"]
    assert produced > ROWS * 0.6
    job.train("--until-end")
    told = job.verified()["rows"]
    assert told["dead_lettered"] == 0 and sum(told.values()) == produced
    assert job.replayed()["snapshots"]
    published = next(streamtrain.follow_snapshots(job.name, job.bootstrap))
    for fitted in (streamtrain.fit(job.job, files=path), streamtrain.fit(alike(name), files=path)):
        assert published.manifest.rows_seen == fitted.manifest.rows_seen == told["trained"]
        assert same_bits(published, fitted)
