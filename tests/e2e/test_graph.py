"""A computation graph in a job file: mistakes, and its way through a manifest."""

from __future__ import annotations

import json

import pytest

from streamtrain import Job
from streamtrain.job.mistakes import JobMistakes

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
