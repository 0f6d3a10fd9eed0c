"""A computation graph in a job file, from a topic to a snapshot and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import streamtrain
from streamtrain import Job, LiveModel
from streamtrain.job.mistakes import JobMistakes
from tests.e2e.harness import LiveJob, rows

COUNT = 3_000
GRAPH = """
[model.graph]                    # deep & cross, with a way around
cross = { multiply = ["wide", "input"] }
wide = { dense = 8, of = "input" }
deep = { dense = 16, activation = "relu", of = "input" }
both = { concat = ["deep", "cross", "input.colour"] }
unread = { dense = 999, of = "both" }
right = { dense = 1, of = "both" }
left = { dense = 1, of = "input.numbers" }
output = { add = ["left", "right"] }
"""


def test_from_a_topic_to_a_snapshot_and_back(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=1, round_interval="off", averaging_frequency=2, model=GRAPH)
    job.produce(COUNT)
    events = job.train("--until-end", failpoints="worker.stepped=9,worker.averaging=3")
    assert any(event["event"] == "worker_died" for event in events)
    assert job.verified()["rows"] == {"trained": COUNT, "dead_lettered": 0, "filtered": 0}
    assert len(job.replayed()["snapshots"]) >= 1
    fitted = streamtrain.fit(job.job, list(rows(COUNT)))
    names = {name.partition(".")[0] for name in fitted.parameters}
    assert names == {"colour", "wide", "deep", "right", "left"}
    total = fitted.manifest.metrics["total"]
    assert total["accuracy"] > total["constant_accuracy"] + 0.05, total
    asked = list(rows(200))
    with LiveModel(job.name, bootstrap=job.bootstrap) as model:
        model.wait_ready(60)
        assert model.predict(asked) == fitted.predict(asked)
    job.produce(10)
    assert job.train("--until-end")  # its own snapshot fits it
    told = json.loads(job.command("explain", "--json").stdout)
    assert [vertex["name"] for vertex in told["vertices"]] == [
        "input", "wide", "cross", "deep", "both", "right", "left", "output",
    ]  # fmt: skip
    assert {vertex["name"]: vertex["columns"] for vertex in told["vertices"]}["both"] == 16 + 8 + 4
    assert 0 < told["workspace_bytes"] < told["workspace_bytes_apart"]
    text = job.command("explain", "--svg", str(tmp_path / "graph.svg")).stdout
    drawn = ElementTree.parse(tmp_path / "graph.svg").getroot()
    named = [each.text.partition(":")[0] for each in drawn.iter("{http://www.w3.org/2000/svg}title")]
    assert named == [vertex["name"] for vertex in told["vertices"]]
    assert len(list(drawn.iter("{http://www.w3.org/2000/svg}path"))) == 2 + 1 + 1 + 3 + 1 + 1 + 2
    assert job.command("explain", "--svg", str(tmp_path)).returncode == 2
    assert "both" in text and "deep, cross, input.colour" in text


STACKED = """
[model.graph]
one = { dense = 20, of = "input" }
other = { dense = 20, activation = "relu", of = "input" }
s = { stack = ["one", "other"] }
h = { dense = 20, activation = "relu", of = "s" }
u = { unstack = "h" }
v = { unstack = "h", index = 1 }
both = { concat = ["u", "v"] }
"""


def test_a_layer_over_a_stack_of_many_rows(kafka: Any, tmp_path: Path) -> None:
    """A tile of it has more rows than are summed in one chain."""
    job = LiveJob(kafka, tmp_path, round_interval="off", batch_rows=256, averaging_frequency=2, model=STACKED)
    job.produce(COUNT)
    events = job.train("--until-end", failpoints="worker.stepped=4")
    ends = {event["how"] for event in events if event["event"] == "worker_died"}
    assert ends == {"SIGKILL"}  # by the failpoint alone
    assert job.verified()["rows"] == {"trained": COUNT, "dead_lettered": 0, "filtered": 0}
    job.replayed()


MISTAKES = [
    ('deep = { dense = 16, of = "colour" }', 'job.toml:9: model.graph.deep.of: expected input, input.<column> or the '
     'name of a vertex, got "colour"; did you mean input.colour?'),
    ("deep = { dense = 0, of = 'input' }", "job.toml:9: model.graph.deep.dense: expected a whole number from 1"),
    ("a = 3", "model.graph: expected a table of vertices by name, got"),
    ("a = { add = ['b', 'input'] }\nb = { scale = 'a', by = 2 }", "no way back to itself"),
    ("a = { add = ['input.x', 'input'] }", "model.graph.a: add of input.x, input: expected values of as many columns"),
]  # fmt: skip


@pytest.mark.parametrize(("graph", "message"), MISTAKES, ids=[str(at) for at in range(len(MISTAKES))])
def test_mistakes_name_their_place(graph: str, message: str) -> None:
    text = f"""name = "x"
[kafka]
bootstrap.servers = "b"
[columns]
x = {{}}
colour = {{ kind = "category", buckets = 8, embed = 3 }}
y = {{ role = "label" }}
[model.graph]
{graph}
"""
    with pytest.raises(JobMistakes) as told:
        Job.parse(text)
    assert message in str(told.value), str(told.value)


def test_a_graph_goes_through_a_manifest_byte_for_byte() -> None:
    text = (
        'name = "x"\n[kafka]\nbootstrap.servers = "b"\n[columns]\nx = {}\ny = { role = "label" }\n[model.graph]\n'
        'z = { dense = 3, of = "input" }\na = { dense = 2, of = "z" }\n'
    )
    job = Job.parse(text)
    sorted_ = json.loads(json.dumps(job.effective(), sort_keys=True))   # as a manifest holds it
    again = Job.from_effective(sorted_)
    assert again.effective() == job.effective() and again.model_spec() == job.model_spec()
    assert again.digest() == job.digest()
