"""[model.heads] in a job file: each mistake at its line with the nearest name, and a job of one loss as it was."""

from __future__ import annotations

import pytest
from looped import over

from streamtrain.compute.model import Model
from streamtrain.job import Job, JobMistakes, settings_table
from tests.job.conftest import replacements

TEXT = """name = "flights"
[kafka]
bootstrap.servers = "localhost:9092"
[columns]
dep_delay = { standardize = true }
zone = { kind = "category", buckets = 64 }
late = { role = "label", missing = "skip_head" }
delay = { role = "label", missing = "skip_head", standardize = true }
mode = { role = "label", classes = ["walk", "sit"] }
[model.graph]
shared = { dense = 8, of = "input" }
tower = { dense = 4, of = "shared" }
[model.heads.late]
weight = 2.0
of = "tower"
[model.heads.delay]
loss = { name = "huber", delta = 0.5 }
[model.heads.mode]
loss = { name = "softmax_cross_entropy", class_weights = { sit = 3 } }
[train.early_stopping]
score = "delay.rmse"
no_improvement = 5
"""
GRAPH = TEXT[TEXT.index("[model.graph]") : TEXT.index("[model.heads.late]")]
HEADS = TEXT[TEXT.index("[model.heads.late]") : TEXT.index("[train")]
OF_SECTIONS = [
    (GRAPH, "", ":12: model.heads.late.of: expected none without [model.graph]"),
    (GRAPH, f'[model]\nloss = "focal"\n{GRAPH}',
     ':11: model.loss: expected none beside heads, of which each has its own, got "focal"'),
    (GRAPH, '[model]\ntorch = "x:Net"\n', "model.heads: expected none beside a PyTorch module, which has one loss"),
    (HEADS, "", ":8: columns.delay: only one column can be the label, and late is; of several each has a head, "
     "[model.heads.delay]"),
]  # fmt: skip
CASES = replacements("""
weight = 2.0 -> weight = 0
    :14: model.heads.late.weight: expected a number above 0 to 1000000, got 0
weight = 2.0 -> weigth = 2
    :14: model.heads.late.weigth: unknown setting; allowed: loss, weight, of; did you mean weight?
delta = 0.5 -> delta = -1
    :17: model.heads.delay.loss.delta: expected a number above 0
delta = 0.5 -> dleta = 1
    :17: model.heads.delay.loss.dleta: unknown setting of huber; allowed: name, delta; did you mean delta?
"huber" -> "hubr"
    :17: model.heads.delay.loss.name: expected one of binary_cross_entropy
{ sit = 3 } -> { stand = 3 }
    :19: model.heads.mode.loss.class_weights
[model.heads.late] -> [model.heads.lat]
    :13: model.heads.lat: expected a column of that name with role = "label", got none; did you mean late?
[model.heads.late] -> [model.heads.lat]
    :7: columns.late: expected a head for each label, [model.heads.late], got none
of = "tower" -> of = "towr"
    :15: model.heads.late.of: expected input, input.<column> or the name of a vertex, got "towr"; did you mean tower?
tower = { -> late = { dense = 1, of = "input" }; tower = {
    :16: model.heads.late.of: expected none: the vertex called late is what the loss takes, as it is
tower = { -> output = { dense = 1, of = "shared" }; tower = {
    model.graph.output: expected no vertex of that name
, classes = ["walk", "sit"] ->
    :9: columns.mode.classes: expected their names, or how many, for loss 'softmax_cross_entropy', got none
"huber", delta = 0.5 -> "softmax_cross_entropy"
    :8: columns.delay
"delay.rmse" -> "rmse"
    train.early_stopping.score: expected one of loss,
name = "flights" -> name = "flights"; [records]; format = "libsvm"
    : expected a label, a weight or one column of kind sparse for libsvm, got another column
""")  # fmt: skip


@over(("old", "new", "message"), [*CASES, *OF_SECTIONS])
def test_each_mistake_has_its_line_and_the_nearest_name(old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(JobMistakes) as error:
        Job.parse(TEXT.replace(old, new.replace("; ", "\n"), 1))
    assert message in str(error.value)


def test_a_job_of_heads_is_what_its_manifest_says() -> None:
    job = Job.parse(TEXT)
    again = Job.from_effective(job.effective())
    assert again.effective() == job.effective() and again.digest() == job.digest()
    assert again.schema.digest() == job.schema.digest() and again.model_spec() == job.model_spec()
    assert "loss" not in job.effective()["model"]
    heads = Model(job.model_spec()).parsed.heads
    assert [(head.name, head.loss, head.weight, head.of, head.partial) for head in heads] == [
        ("late", "binary_cross_entropy", 2.0, "tower", True),
        ("delay", "huber", 1.0, "", True),
        ("mode", "softmax_cross_entropy", 1.0, "", False),
    ]
    assert heads[2].settings["class_weights"] == [1.0, 3.0] and heads[1].shape.standardize_label is not None


def test_flags_variables_and_the_table_of_settings_have_those_of_a_head() -> None:
    variables = {"STREAMTRAIN_MODEL__HEADS__DELAY__WEIGHT": "0.25"}
    heads = Job.parse(TEXT, sets=["model.heads.late.weight=0.5"], environment=variables).model.heads
    assert (heads["late"].weight, heads["delay"].weight) == (0.5, 0.25)
    rows = {each.path: each for each in settings_table()}
    assert rows["model.heads.<label>.weight"].takes == "a number above 0 to 1000000"
    assert rows["model.heads.<label>.loss.name"].default == '"binary_cross_entropy"'


def test_a_job_of_one_loss_is_written_as_it_was_before_there_were_heads(job_text: str) -> None:
    job = Job.parse(job_text)
    assert "heads" not in job.effective()["model"] and "heads" not in job.model_spec()
    assert job.schema.digest() == "da7b42a6659a83ef9feabea149ccade68f29553c2d304760d5370bfa08544b52"
