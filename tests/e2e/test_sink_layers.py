"""Layers, losses, heads, optimizers, schedules and averagings of a job file, and every transform, with state and
without: a few sinks with many of them each; a sink that fails names what it takes to fail."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
import stateful_examples
import transformed
from avro_schemas import record
from example_format import is_columnar, plain_formats

import streamtrain
from streamtrain import Job
from streamtrain.clients.topic_reader import read_messages
from streamtrain.compute import optimizers
from streamtrain.compute.module_spec import COUNTERS
from streamtrain.job.mistakes import JobMistakes
from streamtrain.run.findings import findings
from streamtrain.run.lineage import misfits
from tests.e2e.harness import LiveJob, answered, predicted, rows, toml
from tests.e2e.sink import BASE, Feature, Place, Plan, Row, Sink, run_sink
from tests.e2e.threaded import trained
from tests.oracles.records import encode_records, parse

HEADS = {
    "columns": '"x{1..4}" = { kind = "number", standardize = true }\n'
               'colour = { kind = "category", buckets = 16, embed = 4 }\n'
               'y = { role = "label", missing = "skip_head" }',
    "model.graph": 'shared = { dense = 16, activation = "relu", of = "input" }', "model.heads.y": 'of = "shared"',
}  # fmt: skip


def head(
    name: str, graph: str, label: Any, loss: str, column: str = "", of: str = "", more: str = "", **others: Any
) -> Feature:  # fmt: skip
    """A head of its own: vertices, the last of which it reads, and a label made of a row."""

    def cells(place: Place, row: Row) -> None:
        row[name] = label(place.row, row)

    return Feature(
        name, {"columns": f'{name} = {{ role = "label", missing = "skip_head"{column} }}', "model.graph": graph,
               f"model.heads.{name}": (f'of = "{of}"\n' if of else "") + f"loss = {{ {loss} }}\n{more}"},
        cells=cells, **others,
    )  # fmt: skip


def score(row: Row) -> float:
    return float(row["x1"] - row["x2"])


def sometimes(label: Any) -> Any:
    """Leaves the label out of some rows, of which the head learns nothing."""
    return lambda number, row: None if number % 10 == 0 or number % 3 == 1 else label(number, row)


def settings_of(name: str, expected: dict[str, Any]) -> Any:
    def check(sink: Sink) -> None:
        assert sink.newest.manifest.job_settings["model"]["heads"][name]["loss"] == expected
        assert sink.total[f"{name}.loss"] < 0.9 * sink.total[f"{name}.constant_loss"], sink.total

    return check


def learns(name: str) -> Any:
    def check(sink: Sink) -> None:
        assert sink.total[f"{name}.accuracy"] > sink.total[f"{name}.constant_accuracy"] + 0.05, sink.total

    return check


def check_batch_norm(sink: Sink) -> None:
    learns("normed")(sink)
    assert abs(sink.newest.parameters["n2.running_mean"]).max() > 0.01


def fits(sink: Sink, before: str, after: str) -> list[str]:
    """Returns the differences that a start reports after a change of the job file."""
    text = sink.live.path.read_text()
    assert before in text
    path = sink.live.path.with_suffix(".other.toml")
    path.write_text(text.replace(before, after))
    return misfits(Job.load(path), sink.newest.manifest)


def check_explained(sink: Sink) -> None:
    """`explain` shows the vertices that are read, and draws them; a manifest has them in another order."""
    learns("crossed")(sink)
    again = Job.from_effective(json.loads(json.dumps(sink.newest.manifest.job_settings, sort_keys=True)))
    assert again.digest() == sink.live.job.digest() and again.model_spec() == sink.live.job.model_spec()
    document = json.loads(sink.live.here("explain", "--json").stdout)
    names = [vertex["name"] for vertex in document["vertices"]]
    own = [name for name in names if name in {"wide", "cross", "deep", "both", "right", "left", "crossed", "unread"}]
    assert not any(name.startswith("unread.") for name in sink.newest.parameters)
    assert own == ["wide", "cross", "deep", "both", "right", "left", "crossed"]
    assert {vertex["name"]: vertex["columns"] for vertex in document["vertices"]}["both"] == 16 + 8 + 4
    assert 0 < document["workspace_bytes"] < document["workspace_bytes_apart"]
    text = sink.live.here("explain", "--svg", str(sink.folder / "graph.svg")).stdout
    drawn = ElementTree.parse(sink.folder / "graph.svg").getroot()
    named = [each.text.partition(":")[0] for each in drawn.iter("{http://www.w3.org/2000/svg}title")]
    assert named == names
    reads = {vertex["name"]: len(vertex["reads"]) for vertex in document["vertices"]}
    assert [reads[name] for name in own] == [1, 2, 1, 3, 1, 1, 2]
    assert len(list(drawn.iter("{http://www.w3.org/2000/svg}path"))) == sum(reads.values())
    assert sink.live.here("explain", "--svg", str(sink.folder)).returncode == 2
    assert "both" in text and "deep, cross, input.colour" in text


def has_rows(sink: Sink, *names: str) -> None:
    for name in names:
        assert sink.total[f"{name}.rows"] == sum(row[name] is not None for row in sink.rows)


def check_delay(sink: Sink) -> None:
    """Figures of a head, in the manifest and `history`; another weight does not fit the snapshot."""
    settings = sink.newest.manifest.job_settings["model"]
    assert {"y", "delay"} <= {*settings["heads"]} and "loss" not in settings
    settings_of("delay", {"name": "huber", "delta": 0.5})(sink)
    has_rows(sink, "y", "delay")
    assert sink.total["rows"] == len(sink.rows) - sink.unlabelled() and sink.total["loss"] > 0
    assert sink.total["y.log_loss"] < 0.9 * sink.total["y.constant_log_loss"]
    assert sink.total["delay.rmse"] < 0.9 * sink.total["delay.constant_rmse"]
    lines = sink.live.here("history", "--json").stdout.splitlines()
    assert "delay.rmse" in json.loads(lines[-1])["metrics"]["total"]
    assert fits(sink, "weight = 0.3", "weight = 0.4") == [
        "model.heads.delay.weight: the snapshot has 0.3, the job file 0.4"
    ]
    text = sink.live.here("status").stdout
    assert "in total, delay" in text and "RMSE" in text


def check_mode(sink: Sink) -> None:
    has_rows(sink, "y", "mode")
    assert sink.total["mode.accuracy"] > sink.total["mode.constant_accuracy"] + 0.05
    (answer, *_) = sink.fitted.predict(sink.request_rows)
    assert {"y", "mode"} <= {*answer["prediction"]}
    assert sum(answer["probabilities"]["mode"].values()) == pytest.approx(1, abs=1e-6)
    if len(sink.labels) < 4:  # of more heads `status` shows some
        assert "mode, walk" in sink.live.here("status").stdout


def same_label(number: int, row: Row) -> Any:
    return row["y"]


BINARY = 'name = "binary_cross_entropy"'
SMOOTH = {"name": "binary_cross_entropy", "class_weights": {"1": 3.0}, "label_smoothing": 0.1}
DELAY = head(
    "delay", 'tower = { dense = 8, activation = "tanh", of = "shared" }',
    sometimes(lambda _, row: round(20 + 3 * score(row), 3)), 'name = "huber", delta = 0.5', ", standardize = true",
    "tower", "weight = 0.3", check=check_delay,
)  # fmt: skip
MODE = head(
    "mode", 'mode = { dense = 3, of = "shared" }',
    sometimes(lambda _, row: "walk" if score(row) < -2 else "sit" if score(row) < 2 else "run"),
    'name = "softmax_cross_entropy", class_weights = { run = 2 }', ', classes = ["walk", "sit", "run"]',
    check=check_mode,
)  # fmt: skip
NORMED = """n1 = { dense = 16, of = "input" }
n2 = { batch_norm = 1e-5, activation = "gelu", of = "n1" }
n3 = { dense = 8, of = "n2" }
n4 = { batch_norm = 1e-3, of = "n3" }"""
DROPPED = """d1 = { dense = 16, of = "input" }
d2 = { layer_norm = 1e-5, activation = "gelu", of = "d1" }
d3 = { dropout = 0.3, of = "d2" }"""
CROSSED = """cross = { multiply = ["wide", "input"] }  # deep & cross, with a way around
wide = { dense = 8, of = "input" }
deep = { dense = 16, activation = "relu", of = "input" }
both = { concat = ["deep", "cross", "input.colour"] }
unread = { dense = 999, of = "both" }
right = { dense = 1, of = "both" }
left = { dense = 1, of = "input.numbers" }
crossed = { add = ["left", "right"] }"""
STACKED = """one = { dense = 20, of = "input" }
other = { dense = 20, activation = "relu", of = "input" }
s = { stack = ["one", "other"] }
h = { dense = 20, activation = "relu", of = "s" }
u = { unstack = "h" }
v = { unstack = "h", index = 1 }
joined = { concat = ["u", "v"] }"""
FEATURES = [
    DELAY, MODE,
    head("count", 'counted = { dense = 8, of = "input" }', lambda _, row: int(np.clip(score(row) + 5, 0, 20)),
         'name = "poisson"', of="counted", check=settings_of("count", {"name": "poisson"})),
    head("smooth", 'smoothed = { dense = 8, of = "input" }', same_label,
         f"{BINARY}, class_weights = {{ 1 = 3 }}, label_smoothing = 0.1", of="smoothed",
         check=settings_of("smooth", SMOOTH)),
    head("normed", NORMED, same_label, BINARY, of="n4", check=check_batch_norm),
    head("dropped", DROPPED, same_label, BINARY, of="d3", check=learns("dropped")),
    head("crossed", CROSSED, same_label, BINARY, check=check_explained),
    head("stacked", STACKED, same_label, BINARY, of="joined", check=learns("stacked")),
]  # fmt: skip
SETTINGS = {
    "optimizer": "l1 = 1e-4\nl2 = 1e-4\nweight_decay = 1e-3\nclip_value = 5\nclip_norm = 2\nmax_norm = 4",
    "optimizer.groups": "bias = { rate_factor = 2, clip_group_norm = 0.5 }\nembedding = { weight_decay = 0 }",
}


def unusual() -> list[str]:
    """Optimizers that keep the most, and those that go by parameter."""
    entries = {name: optimizers.get(name) for name in optimizers.names()}
    kept = {name: len(entry.state(optimizers.by_group(name, {})["weight"])) for name, entry in entries.items()}
    return [name for name in entries
            if kept[name] == max(kept.values()) or getattr(entries[name], "PER_PARAMETER", False)]  # fmt: skip


def optimizer(name: str) -> Feature:
    def check(sink: Sink) -> None:
        settings = sink.newest.manifest.job_settings["optimizer"]
        assert settings["name"] == name and settings["max_norm"] == 4.0
        assert settings["groups"]["bias"] == {"rate_factor": 2.0, "clip_group_norm": 0.5}

    lines = f'name = "{name}"\n{SETTINGS["optimizer"]}'
    return Feature(f"optimizer {name}", {**SETTINGS, "optimizer": lines}, check=check)


def constant(sink: Sink, schedule: str) -> None:
    """A constant rate gives other figures."""
    text = sink.plan.job(sink.features, twin=True)
    assert schedule in text
    head = 'name = "plain"\n[kafka]\nbootstrap.servers = "none"\n'
    plain = Job.parse(head + text.replace(schedule, 'name = "constant"\n'))
    assert streamtrain.fit(plain, sink.rows).manifest.metrics["total"] != sink.total


COSINE = 'name = "cosine"\nsteps = 12\nrestarts = true\ngrowth = 2\nend = 0.1\nwarm_up = 4\n'


def check_cosine(sink: Sink) -> None:
    schedule = sink.newest.manifest.job_settings["optimizer"]["schedule"]
    assert schedule == {"name": "cosine", "steps": 12, "end": 0.1, "restarts": True, "growth": 2, "warm_up": 4}
    constant(sink, COSINE)


def test_a_graph_of_many_heads(kafka: Any, tmp_path: Path) -> None:
    assert unusual() == ["amsgrad", "lamb"]  # each in a sink of this file
    features = [
        *FEATURES, optimizer("amsgrad"), Feature("schedule", {"optimizer.schedule": COSINE}, check=check_cosine),
        Feature("growing batches", {"train": "batch_growth = 300"}),
    ]  # fmt: skip
    train = BASE["train"].replace('batch_growth = "off"\n', "")
    run_sink(kafka, tmp_path, features, Plan({**HEADS, "train": train, "optimizer": "learning_rate = 1e-2"}))


# -- a model of layers over classes ---------------------------------------------------------------------------------

CLASSES = 7
PLATEAU = 'name = "plateau"\nrows = 100\npatience = 2\nthreshold = 0.02\nfactor = 0.75\nleast = 0.01\n'


def classes_of(place: Place, row: Row) -> None:
    """A seventh class is never seen."""
    row["y"] = int(np.clip(row["x1"] + 2 * row["y"], 0, 5))


def check_classes(sink: Sink) -> None:
    total, count = sink.total, len(sink.rows)
    matrix = np.array(total["confusion_matrix"])
    assert matrix.shape == (CLASSES, CLASSES) and matrix.sum() == count and not matrix[6].any()
    assert matrix.sum(1).tolist() == np.bincount([row["y"] for row in sink.rows], minlength=CLASSES).tolist()
    assert np.trace(matrix) / count == total["accuracy"] <= total["top_5_accuracy"] <= 1 and total["macro_f1"] > 0.2
    job = sink.live
    status = json.loads(job.here("status", "--json").stdout)
    assert status["metrics"]["total"]["confusion_matrix"] == matrix.tolist()
    assert [each["class"] for each in status["by_class"]][:6] == list("012345")
    assert "macro F1" in job.here("status").stdout and "precision" in job.here("status").stdout
    last = json.loads(job.here("history", "--json").stdout.splitlines()[-1])
    assert last["metrics"]["total"]["confusion_matrix"] == matrix.tolist()
    header = job.here("history", "--csv").stdout.splitlines()[0]
    assert "total.macro_f1" in header and "confusion" not in header


def check_plateau(sink: Sink) -> None:
    """The rate falls where the loss stops to improve; how far belongs to the lineage and its settings."""
    left, rate = sink.newest.manifest.metrics["rate_left"], 2e-2
    assert 0.01 <= left < 1 and left in [max(0.01, 0.75**n) for n in range(20)]
    assert sink.live.here("history").stdout.count(f" {rate * left:g} ")
    assert sink.fitted.history.frame()["learning_rate"].iloc[-1] == rate * left
    constant(sink, PLATEAU)
    (problem,) = fits(sink, "patience = 2", "patience = 3")
    assert "optimizer.schedule" in problem


def check_accumulated(sink: Sink) -> None:
    """The bits are those of batches of as many rows."""
    assert sink.newest.manifest.slot.row_capacity == 64
    assert sink.newest.manifest.metrics["updates"] == -(-len(sink.rows) // (2 * 64))  # of a worker
    text = sink.plan.job(sink.features, twin=True)
    whole = text.replace("accumulate = 4\n", "").replace("batch_rows = 16", "batch_rows = 64")
    fitted = streamtrain.fit(Job.parse('name = "whole"\n[kafka]\nbootstrap.servers = "none"\n' + whole), sink.rows)
    for name, array in fitted.parameters.items():
        assert array.tobytes() == sink.newest.parameters[name].tobytes(), name


def check_changes(sink: Sink) -> None:
    """Columns or a model that no longer fit are refused with the difference; another rate is none."""
    changes = {"{1..4}": ("{1..5}", "x{1..5}"), "dense = 16": ("dense = 24", "24"),
               "buckets = 16": ("buckets = 32", "32")}  # fmt: skip
    text = sink.live.path.read_text()
    for before, (after, named) in changes.items():
        problems = fits(sink, before, after)
        assert problems and named in " ".join(problems), problems
    assert not fits(sink, "learning_rate = 2e-2", "learning_rate = 1e-3")
    sink.live.path.write_text(text.replace("buckets = 16", "buckets = 32"))
    (finding,) = [each for each in findings(Job.load(sink.live.path), sink.live.admin, None) if each.what == "snapshot"]
    sink.live.path.write_text(text)
    assert finding.state == "mistake" and "32" in finding.text and "--fresh" in finding.text


def test_classes_by_layers(kafka: Any, tmp_path: Path) -> None:
    base = {
        "columns": HEADS["columns"].replace(', missing = "skip_head"', f", classes = {CLASSES}"),
        "model": 'layers = [ { dense = 16, activation = "relu" } ]\nloss = "softmax_cross_entropy"',
        "optimizer": "learning_rate = 2e-2",
    }
    features = [
        Feature("classes", cells=classes_of, check=check_classes), optimizer("lamb"),
        Feature("a schedule by the loss", {"optimizer.schedule": PLATEAU}, check=check_plateau),
        Feature("batches accumulated to an update", {"train": "accumulate = 4"}, check=check_accumulated),
        Feature("a job file that changes", check=check_changes),
    ]  # fmt: skip
    run_sink(kafka, tmp_path, features, Plan(base, count=4_000))


# -- the outer step, threads, and heads over layers -----------------------------------------------------------------

OUTER = {"name": "outer_nesterov", "rate": 1.2, "momentum": 0.4}
OUTER_LINES = 'name = "outer_nesterov"\nrate = 1.2\nmomentum = 0.4\n'


def check_outer(sink: Sink) -> None:
    stored = sink.live.newest()
    assert stored.trainer is not None
    kept = safetensors.numpy.load(stored.trainer)
    velocities = [kept[name] for name in kept if name.startswith("outer.velocity.")]
    stepped = [name for name in sink.newest.parameters if "running_" not in name and "embedding" not in name]
    assert len(velocities) == len(stepped)
    assert all(np.abs(each).max() > 0 for each in velocities)
    assert stored.manifest.model_spec["averaging"] == OUTER
    for other in (OUTER_LINES.replace("0.4", "0.5"), 'name = "mean"\n'):
        (problem,) = fits(sink, OUTER_LINES, other)
        assert problem.startswith("train.averaging: snapshot")


def check_own_states(sink: Sink) -> None:
    stored = sink.live.newest()
    assert stored.trainer is not None and any(name.endswith("@1") for name in safetensors.numpy.load(stored.trainer))
    assert sink.newest.manifest.metrics["after_averaging"]["loss"] > 0
    (problem,) = fits(sink, "workers = 2", "workers = 1")
    assert "own optimizer state" in problem


LARGE = BASE["train"].replace("batch_rows = 16", "batch_rows = 256")
OWN_STATES = {"train": "average_optimizer_state = false\nreport_score_after_averaging = true"}


def over_layers(feature: Feature) -> Feature:
    """A head of the last layer, without vertices of its own."""
    section = f"model.heads.{feature.name}"
    job = {"columns": feature.job["columns"], section: feature.job[section].replace('of = "tower"\n', "")}
    return replace(feature, job=job)


def unlabelled(place: Place, row: Row) -> None:
    if place.row % 10 == 0:  # where the other labels are missing too
        row["y"] = None


def check_unlabelled(sink: Sink) -> None:
    assert sink.unlabelled() > len(sink.rows) / 11


def more_threads(sink: Sink) -> None:
    sink.live.path.write_text(sink.live.path.read_text().replace("threads_per_worker = 2", "threads_per_worker = 3"))


def test_heads_over_layers(kafka: Any, tmp_path: Path) -> None:
    """There is an outer step, and threads in the workers, which change no bit."""
    features = [
        over_layers(DELAY), over_layers(MODE),
        Feature("rows without any label", cells=unlabelled, check=check_unlabelled),
        Feature("the outer step", {"train.averaging": OUTER_LINES}, check=check_outer),
        Feature("optimizer states of each worker", OWN_STATES, check=check_own_states),
        Feature("threads", {"train": "threads_per_worker = 2"}, twin={}, then=more_threads),
    ]  # fmt: skip
    layers = 'layers = [ { dense = 16 }, { batch_norm = 1e-5, activation = "relu" } ]'
    base = {"columns": HEADS["columns"], "model": layers, "model.heads.y": "", "train": LARGE}
    run_sink(kafka, tmp_path, features, Plan(base, count=12_000))


@pytest.mark.full
def test_a_layer_over_a_stack_of_many_rows(kafka: Any, tmp_path: Path) -> None:
    """A tile of it has more rows than are summed in one chain."""
    stacked = next(each for each in FEATURES if each.name == "stacked")
    run_sink(kafka, tmp_path, [stacked], Plan({**HEADS, "train": LARGE}, count=9_000, once=True))


MISTAKES = [
    ('deep = { dense = 16, of = "colour" }', 'job.toml:9: model.graph.deep.of: expected input, input.<column> or the '
     'name of a vertex, got "colour"; did you mean input.colour?'),
    ("deep = { dense = 0, of = 'input' }", "job.toml:9: model.graph.deep.dense: expected a whole number from 1"),
    ("a = 3", "model.graph: expected a table of vertices by name, got"),
    ("a = { add = ['b', 'input'] }\nb = { scale = 'a', by = 2 }", "no way back to itself"),
    ("a = { add = ['input.x1', 'input'] }", "model.graph.a: add of input.x1, input: expected values of as many"),
]  # fmt: skip


@pytest.mark.parametrize(("graph", "message"), MISTAKES)
def test_mistakes_of_a_graph_name_their_place(graph: str, message: str) -> None:
    with pytest.raises(JobMistakes) as raised:
        Job.parse(f'name = "x"\n[kafka]\nbootstrap.servers = "b"\n[columns]\n{BASE["columns"]}\n[model.graph]\n{graph}')
    assert message in str(raised.value)


# -- a PyTorch module as a job's model: a program names it, and answers have PyTorch's bits ---------------------------

NET = """
import torch

class Net(torch.nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.numbers = inputs.columns["numbers"]
        self.body = torch.nn.Sequential(
            torch.nn.Linear(inputs.width, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Dropout(0.1),
            torch.nn.Linear(16, inputs.outputs),
        )
        self.linear = torch.nn.Linear(4, inputs.outputs)

    def forward(self, x):
        return self.body(x) + self.linear(x[:, self.numbers])
"""


def test_a_pytorch_module(kafka: Any, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")
    (tmp_path / "net_of_a_job.py").write_text(NET)

    def check(sink: Sink) -> None:
        count = len(sink.rows)
        assert sink.newest.statistics[COUNTERS].tolist() == [-(-count // 16)]  # batches, whoever has trained them
        assert sink.total["accuracy"] > sink.total["constant_accuracy"] + 0.15
        fitted = streamtrain.fit(sink.live.job, sink.rows)
        request_rows = [sink.without_labels(row) for row in sink.rows[:300]]
        with sink.live.model(module="net_of_a_job:Net") as model:
            answers = model.predict(request_rows)
        assert answers == fitted.predict(request_rows)
        assert np.allclose(predicted(sink.live, request_rows), answered(answers), rtol=1e-5)

    plan = Plan({"model": 'torch = "net_of_a_job:Net"'}, fits=False, once=True)
    threads = torch.get_num_threads()
    try:
        run_sink(kafka, tmp_path, [Feature("a module", check=check)], plan)
    finally:  # `predict` has this process to itself otherwise
        torch.set_num_threads(threads)
        torch.set_deterministic_debug_mode("default")


COUNT = 600
PACKED = 7  # rows a record of a columnar format
WHERE = "x1 > 0.5 and (colour != 'green' or big == 1)"
OWN = 'big = { expr = "x2 > 3", role = "input" }\nx12 = { expr = "x1 * x2", standardize = true }'
_IDS = '{ kind = "category", hash_bits = 64, vocabulary = { capacity = 60, admit = 2 }, embed = 4, missing = "" }'
HASHES = f"id = {_IDS}"


CLOCK = "at"  # the one column that examples share


def lines(tables: dict[str, Any]) -> str:
    return "\n".join(f"{name} = {toml(table)}" for name, table in tables.items())


def give(cells: Sequence[Row], place: Place, row: Row) -> None:
    row |= cells[place.row]


def feature(name: str, columns: dict[str, Any], table: dict[str, Any], cells: Sequence[Row]) -> Feature:
    """A transform with columns of its own."""
    own = [{column: each[column] for column in columns} for each in cells]
    return Feature(name, {"columns": lines(columns), "transforms": lines({name: table})}, cells=partial(give, own))


def features() -> list[Feature]:
    columns, tables, cells = transformed.together(3, COUNT)
    without_state = [
        feature(name, {c: columns[c] for c in columns if c.startswith(name.removeprefix("made_") + "_")}, table, cells)
        for name, table in tables.items()
    ]
    columns, tables = stateful_examples.together()
    cells = stateful_examples.cells(columns, COUNT)
    with_state = [
        feature(name, {c: columns[c] for c in columns if c.endswith(name.removeprefix("made"))}, table, cells)
        for name, table in tables.items()
    ]
    return [*without_state, *with_state]


def given(chosen: Sequence[Feature]) -> tuple[dict[str, str], list[Row]]:
    """The job file's sections but for records.format, and the rows."""
    columns, _ = stateful_examples.together()
    shared = {name: column for name, column in columns.items() if name in ("worded", CLOCK)}
    base = {
        "columns": "\n".join([BASE["columns"], HASHES, lines(shared)]), "transforms": OWN,
        "records": f"max_dead_letter_share = 1.0\nwhere = {toml(WHERE)}",
    }  # fmt: skip
    cells = stateful_examples.cells(columns, COUNT)
    all_rows = []
    for at, row in enumerate(rows(COUNT)):
        row |= {"id": "" if at % 11 == 0 else f"u{at * at % 97}", **{name: cells[at][name] for name in shared}}
        for each in chosen:
            each.cells(Place(at, at), row)
        all_rows.append(row)
    return base, all_rows


def any_avro(names: Iterable[str]) -> str:
    """The format of rows of which any field may be anything, as a job file has it."""
    scalar = ["null", "boolean", "long", "double", "string"]
    cell = [*scalar, {"type": "array", "items": scalar}]
    return f'format = "avro"\nschema = {toml(json.dumps(record(*((name, cell) for name in names))))}'


def is_kept(row: Row) -> bool:
    return row["x1"] > 0.5 and (row["colour"] != "green" or row["x2"] > 3)


def produce(job: LiveJob, all_rows: list[Row]) -> None:
    packed = PACKED if is_columnar(job.job.records.format) else 1
    for at in range(0, len(all_rows), packed):
        job.produce_values(encode_records(job.job.records.named, job.job.schema, all_rows[at : at + packed]))


def run(kafka: Any, folder: Path, chosen: Sequence[Feature]) -> None:
    base, all_rows = given(chosen)

    def job(name: str, format: str) -> LiveJob:
        text = Plan({**base, "records": f"{format}\n{base['records']}"}).job(chosen)
        return LiveJob(kafka, folder, "transforms", text, partitions=1, format=name)

    schema = job("json", 'format = "json"').job.schema
    names = [name for name in plain_formats(schema) if name != "csv"]  # in which all is text
    jobs = [*(job(name, f'format = "{name}"') for name in names), job("avro", any_avro(schema.record_names))]
    for each in jobs:
        produce(each, all_rows)
    first, *others = jobs
    events = first.train("--until-end", failpoints="worker.stepped=3,worker.averaging=2")
    assert [event["event"] for event in events].count("worker_died") == 2
    for each in others:
        assert trained(each.path).code == 0
    newest = first.newest()
    for each in jobs:
        found = each.newest()
        assert (found.model, found.trainer) == (newest.model, newest.trainer), each.settings["format"]
        counts = each.verified()["rows"]
        assert counts["trained"] > COUNT / 4 and sum(counts.values()) == COUNT, counts
        assert counts["dead_lettered"] > 0 or len(chosen) < len(features())
        assert counts["filtered"] >= sum(not is_kept(row) for row in all_rows)
    assert len(first.replayed()["snapshots"]) >= 1
    check_hashes(next(each for each in jobs if each.settings["format"] == "packed"))
    check_answers(first, all_rows)
    check_transform_changes(first)


def check_hashes(job: LiveJob) -> None:
    """Packed records hold 64 bits of a hash where the others hold texts."""
    (message, *_) = read_messages(job.job, "records", until_end=True)
    cells = dict(parse("packed", message.value or b"").columns or [])["id"]
    assert isinstance(cells, list) and [cell.bits for cell in cells[1:]] == [64] * (PACKED - 1)


def check_answers(job: LiveJob, all_rows: list[Row]) -> None:
    request_rows = [{name: cell for name, cell in row.items() if name != "y"} for row in all_rows[:120]]
    fitted = streamtrain.fit(job.path, all_rows)
    with job.model() as live:
        answers = answered(live.predict(request_rows, errors="return"))
        assert answered(fitted.predict(request_rows, errors="return")) == answers
        columns = {name: [row[name] for row in request_rows] for name in request_rows[0]}
        for form in (columns, pd.DataFrame(request_rows, dtype=object)):
            assert answered(live.predict(form, errors="return")) == answers
        assert [answered([live.predict(row, errors="return")])[0] for row in request_rows] == answers
    assert len({*answers} - {None}) > 20
    assert predicted(job, request_rows) == answers


def check_transform_changes(job: LiveJob) -> None:
    """A changed transform is refused with the difference."""
    text = job.path.read_text()
    for before, after, problem in [
        ('"x1 * x2"', '"x1 - x2"', "transforms.x12.expr: the snapshot has x1 * x2, the job file x1 - x2"),
        ("x1 > 0.5", "x1 > 0.25", "records.where: the snapshot has"),
        ("x12 = {", "x21 = {", "transforms.x21"),
    ]:
        job.path.write_text(text.replace(before, after))
        done = trained(job.path)
        assert done.code == 2 and problem in done.errors[0].replace('"', ""), (problem, done.errors)


def test_every_transform(kafka: Any, tmp_path: Path) -> None:
    run_sink(kafka, tmp_path, features(), run=partial(run, kafka, tmp_path))


# -- a sink that fails names the features that it takes to fail -------------------------------------------------------

LETTERS = [Feature(name) for name in "abcdefg"]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (["c"], "fails with c: c is broken"), (["b", "g"], "fails with b; g: b, g are"), ([], None),
        (["a+f"], "fails with only together: a, b, c, d, e, f, g: a+f is broken"),
        (["b+c"], "fails with only together: b, c: b+c is"), (["a", "b+c"], "fails with a; only together: b, c: "),
        ([""], "fails with no feature: "),
    ],
)  # fmt: skip
def test_it_names_what_it_takes_to_fail(broken: list[str], message: str | None) -> None:
    runs: list[str] = []

    def run(chosen: Sequence[Feature]) -> None:
        names = {each.name for each in chosen}
        runs.append("".join(sorted(names)))
        found = [each for each in broken if {*each.split("+")} - {""} <= names]
        assert not found, f"{', '.join(found)} {'is' if len(found) == 1 else 'are'} broken"

    if message is None:
        return run_sink(None, None, LETTERS, run=run)  # type: ignore[arg-type]
    with pytest.raises(AssertionError) as raised:
        run_sink(None, None, LETTERS, run=run)  # type: ignore[arg-type]
    assert message in str(raised.value)
    assert runs[0] == "abcdefg" and len(runs) <= 2 * len(LETTERS)
