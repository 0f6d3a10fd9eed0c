"""The job files of examples/ over the data they name: how well they learn; the same bits from a file and from Kafka.

The data lies in the folder that STREAMTRAIN_DATA names, or in ../shared/data beside the checkout; flights are those of
the extra `demo`.
"""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

import streamtrain
from streamtrain import Job
from streamtrain.cli import main
from streamtrain.compute.builder import PREDICTING
from streamtrain.demo.flights import data_file
from streamtrain.errors import UserMistake
from tests.bench.learning_streams import DATA
from tests.compute.conftest import Rig
from tests.e2e.harness import LiveJob
from tests.fitting.example import same_bits

pytestmark = pytest.mark.full

EXAMPLES = Path(__file__).parents[2] / "examples"
ROWS = 1_500  # through Kafka
Written = Callable[[Path], None]


def copy(name: str, path: Path) -> None:
    path.write_bytes((DATA / name).read_bytes())


def nsl_kdd(path: Path) -> None:
    path.write_bytes((EXAMPLES / "nsl_kdd.header").read_bytes()
                     + (DATA / "nsl_kdd/KDDTrain+_20Percent.txt").read_bytes())  # fmt: skip


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


# data, the file's end, and the most that figures may be of all rows, each predicted before it is learned
EVERY: dict[str, tuple[Written, str, dict[str, float]]] = {
    "adult": (partial(copy, "adult/adult.csv"), ".csv", {"errors": 0.150, "log_loss": 0.317}),
    "elec2": (partial(copy, "elec2/elec.csv"), ".csv", {"errors": 0.196, "log_loss": 0.426}),
    "nsl_kdd": (nsl_kdd, ".csv", {"errors": 0.017, "log_loss": 0.045}),
    "rcv1": (partial(copy, "rcv1/rcv1_small.dat"), ".vw", {"errors": 0.160, "log_loss": 0.375}),
    "rcv1_squared": (partial(copy, "rcv1/rcv1_small.dat"), ".vw", {"loss": 0.527}),  # VW's own default has 0.502
    "cifar10": (cifar10, ".jsonl", {"errors": 0.690, "log_loss": 1.880}),
    "flights": (flights, ".csv", {"errors": 0.098, "log_loss": 0.264}),
    "flights_avro": (flights, ".csv", {"errors": 0.098, "log_loss": 0.264}),
    "flights_deepfm": (flights, ".csv", {"errors": 0.098, "log_loss": 0.264}),
    "flights_deepfm_torch": (flights_with_torch, ".csv", {"errors": 0.098, "log_loss": 0.264}),
    "flights_dcn": (flights, ".csv", {"errors": 0.098, "log_loss": 0.263}),
}


def written(name: str, folder: Path, rows: int | None = None) -> Path:
    """Writes the example's data as the file that its job file names. Skips the test where there is no data."""
    write, end, _ = EVERY[name]
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
    assert {path.stem for path in EXAMPLES.glob("*.toml")} == EVERY.keys()
    text = (EXAMPLES / "README.md").read_text()
    assert all(f"`{name}.toml`" in text for name in EVERY)


def test_the_two_ways_of_flights_are_one_declaration() -> None:
    one, other = (Job.without_kafka(EXAMPLES / f"{name}.toml") for name in ("flights", "flights_avro"))
    assert one.schema.digest() == other.schema.digest() and one.model_spec() == other.model_spec()


@pytest.mark.parametrize("name", EVERY)
def test_it_learns(name: str, tmp_path: Path) -> None:
    fitted = streamtrain.fit(EXAMPLES / f"{name}.toml", files=written(name, tmp_path))
    figures, most = fitted.manifest.metrics["total"], EVERY[name][2]
    assert fitted.manifest.counts.dead == 0 and figures["rows"] == fitted.manifest.rows_seen
    found = {**figures, "errors": 1 - figures.get("accuracy", 0)}
    assert not [(each, found[each]) for each in most if found[each] > most[each]], figures


def test_attacks_of_other_kinds(tmp_path: Path) -> None:
    """Three in ten attacks of NSL-KDD's test file are of kinds that the file for training does not have."""
    fitted = streamtrain.fit(EXAMPLES / "nsl_kdd.toml", files=written("nsl_kdd", tmp_path))
    header = (EXAMPLES / "nsl_kdd.header").read_text().strip().split(",")
    tests = DATA / "nsl_kdd/KDDTest+.txt"
    columns = dict(zip(header, zip(*csv.reader(tests.read_text().splitlines()), strict=True), strict=True))
    is_attack = np.array(columns.pop("attack")) != "normal"
    texts = {"protocol_type", "service", "flag"}
    rows = {name: np.array(cells, None if name in texts else float) for name, cells in columns.items()}
    p = np.array([answer["prediction"] for answer in fitted.predict(rows)])
    assert ((p >= 0.5) == is_attack).mean() >= 0.77


def live(name: str, kafka: Any, folder: Path, registry: Callable[[], Any]) -> LiveJob:
    """The job file under a name of its own, on the tests' Kafka."""
    text = (EXAMPLES / f"{name}.toml").read_text().partition('bootstrap.servers = "localhost:9092"\n')[2]
    if "[registry]" in text:
        schema, url = (EXAMPLES / "flights.avsc").read_text(), registry().url
        text = text.replace("http://localhost:8081", url)
        (folder / "flights.avsc").write_text(schema)
        # the first answer of a registry that has just started may take longer than a writer waits
        SchemaRegistryClient({"url": url, "timeout": 60}).register_schema("warm", Schema(schema, "AVRO"))
    shutil.copy(EXAMPLES / "deepfm.py", folder)
    return LiveJob(kafka, folder, name, text)


def alike(name: str) -> Path:
    """The job file of the same declaration, for another format."""
    return EXAMPLES / f"{name.removesuffix('_avro')}.toml"


@pytest.mark.parametrize("name", [name for name in EVERY if name != "rcv1_squared"])
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
    counts = job.verified()["rows"]
    assert counts["dead_lettered"] == 0 and sum(counts.values()) == produced
    assert job.replayed()["snapshots"]
    published = next(streamtrain.follow_snapshots(job.name, job.bootstrap))
    for fitted in (streamtrain.fit(job.job, files=path), streamtrain.fit(alike(name), files=path)):
        assert published.manifest.rows_seen == fitted.manifest.rows_seen == counts["trained"]
        assert same_bits(published, fitted)


DENSE = {"linear": "linear", "first": "deep.0", "second": "deep.3", "deep": "deep.5"}  # of the graph, of the module


def test_both_predict_the_same_from_the_same_parameters() -> None:
    """DeepFM as a graph and as a PyTorch module is one network."""
    pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")
    jobs = [Job.without_kafka(EXAMPLES / f"flights_deepfm{end}.toml") for end in ("", "_torch")]
    graph, module = (Rig(job.model_spec(), network=job.network) for job in jobs)
    for block in graph.blocks:
        assert np.array_equal(graph.blocks[block], module.blocks[block])
    ours, theirs = graph.model.views(graph.state), module.model.views(module.state)
    for name in ours.keys() & theirs.keys():
        if ours[name].shape == theirs[name].shape:
            theirs[name][...] = ours[name]
    random = np.random.default_rng(1)
    for vertex, layer in DENSE.items():
        weight, bias = f"{vertex}.weight", f"{vertex}.bias"
        ours[weight][...] = random.normal(0, 0.3, ours[weight].shape)
        ours[bias][...] = random.normal(0, 0.3, ours[bias].shape)
        theirs[f"module.{layer}.weight"][...] = ours[weight].T
        theirs[f"module.{layer}.bias"][...] = ours[bias]
    found = []
    for rigged in (graph, module):
        plan = rigged.plan(phases=PREDICTING)
        plan.predict(rigged.address)
        found.append(plan.output()[: rigged.rows].copy())
    assert np.ptp(found[0]) > 0.5
    np.testing.assert_allclose(*found, atol=2e-6)
