"""Every kind of mistake in a job file, with its exact message; the scanner against tomllib: every path of a document
has a line, and the line holds the key."""

from __future__ import annotations

import pickle
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from looped import over

from streamtrain.columns.formats import format_names
from streamtrain.columns.kinds import features
from streamtrain.columns.kinds.input import HOLDS
from streamtrain.compute import layers, losses, optimizers
from streamtrain.errors import UserMistake
from streamtrain.job import Job, JobMistakes
from streamtrain.job.lines import Path, toml_lines
from tests.job.conftest import replacements

TRAIN = (
    "batch_rows, batch_growth, min_batch_rows, accumulate, workers, threads_per_worker, affinity, averaging_frequency, "
    "round_interval, prefetch_buffer, report_score_after_averaging, averaging, average_optimizer_state, backend, seed, "
    "hosts, early_stopping"
)
SECTIONS = (
    "name, topics, records, columns, transforms, model, optimizer, train, ingest, publish, predict, kafka, registry"
)

# each: `old -> new`, and the message below it
CASES = replacements("""
batch_rows -> batch_row
    :26: train.batch_row: unknown setting; allowed: $TRAIN; did you mean batch_rows?
workers = 2 -> workers = 0
    :27: train.workers: expected a whole number from 1 to 64, got 0
workers = 2 -> workers = "2"
    :27: train.workers: expected a whole number from 1 to 64, got "2"
workers = 2 -> workers = 2.5
    :27: train.workers: expected a whole number from 1 to 64, got 2.5
workers = 2 -> workers = true
    :27: train.workers: expected a whole number from 1 to 64, got true
workers = 2 -> early_stopping = { rows = 1, held_out = {} }
    :27: train.early_stopping.held_out: expected files or a topic, one of the two, got {}
workers = 2 -> early_stopping = { rows = 1, held_out = { files = [] } }
    :27: train.early_stopping.held_out.files: expected an array of texts that is not empty, got []
"250ms" -> "250"
    :29: train.round_interval: expected a duration of at least 1ms such as "250ms", "1s" or "10m", or "off", got
    "250"
"1s" -> "off"
    :33: publish.interval: expected a duration of at least 1ms such as "250ms", "1s" or "10m", got "off"
"10m" -> 600
    :34: publish.archive.every: expected a duration of at least 1s such as "250ms", "1s" or "10m", got 600
"json" -> "jsn"
    :10: records.format: expected one of $FORMATS, got "jsn"; did you mean json?
"adam" -> "Adam"
    :22: optimizer.name: expected one of $OPTIMIZERS, got "Adam"; did you mean adam?
3e-3 -> 0
    :23: optimizer.learning_rate: expected a number above 0 to 1000, got 0
3e-3 -> nan
    :23: optimizer.learning_rate: expected a number above 0 to 1000, got nan
[publish] -> [publsh]
    :32: publsh: unknown section; allowed: $SECTIONS; did you mean publish?
name = "flights" ->
    : name: missing, expected a name of letters, digits, '.', '_' and '-', at most 200
name = "flights" -> name = "my flights"
    :1: name: expected a name of letters, digits, '.', '_' and '-', at most 200, got "my flights"
partitions = 4 -> partition = 4
    :7: topics.records.partition: unknown setting; allowed: name, partitions, replication, config; did you mean
    partitions?
records = { name = "prod.flights", partitions = 4 } -> snapshots = { name = "prod.flights" }
    :7: topics.snapshots.name: expected no name: a bootstrap address and a job name must be enough to find it, got
    "prod.flights"
records = { name = "prod.flights", partitions = 4 } -> control.partitions = 2
    :7: topics.control.partitions: expected 1, which is fixed, got 2
records = { name = "prod.flights", partitions = 4 } -> snapshots.config = { "cleanup.policy" = "delete" }
    :7: topics.snapshots.config."cleanup.policy": expected compact, which its readers rest on, got "delete"
records = { name = "prod.flights", partitions = 4 } -> dead-letters.config = { "cleanup.policy" = "compact,delete" }
    :7: topics.dead-letters.config."cleanup.policy": expected delete, which its readers rest on, got
    "compact,delete"
records = { name = "prod.flights", partitions = 4 } -> requests = "flights.records"
    :7: topics.requests: expected a topic of its own (records has this one), got "flights.records"
bootstrap.servers -> group.id
    :4: kafka.group.id: set by streamtrain, remove it: streamtrain reads from positions of its own
bootstrap.servers -> consumer.isolation.level
    :4: kafka.consumer.isolation.level: set by streamtrain, remove it: exactly once rests on it
bootstrap.servers = "localhost:9092" -> sasl.password = [1]
    :4: kafka.sasl.password: expected a text, a number, true or false, got list (not shown)
bootstrap.servers = "localhost:9092" ->
    :3: kafka.bootstrap.servers: no broker given: set bootstrap.servers = "host:9092" in [kafka],
    STREAMTRAIN_KAFKA__BOOTSTRAP_SERVERS or --bootstrap
bootstrap.servers -> producer.liger.ms
    :4: kafka.producer.liger.ms: unknown librdkafka property; did you mean linger.ms?
bootstrap.servers = "localhost:9092" -> consumer.fetch.wait.max.ms = -3
    :4: kafka.consumer.fetch.wait.max.ms: expected integer 0 to 300000, got another value (not shown)
bootstrap.servers -> dr_msg_cb
    :4: kafka.dr_msg_cb: a librdkafka property no file can hold, remove it
role = "label", ->
    :12: columns: expected one column with role = "label", got none
prefetch_buffer = 24 -> prefetch_buffer = 15
    :30: train.prefetch_buffer: expected at least two rounds: 2 x 2 workers x 4 steps = 16 slots, got 15
buckets = 64, ->
    :14: columns.carrier.buckets: expected a number of buckets for a category, or a vocabulary, got none
missing = 0 -> missing = "x"
    :13: columns.dep_delay.missing: expected "dead_letter", "skip" or a number, got 'x'
standardize = true, missing = 0 -> missing = "mean"
    :13: columns.dep_delay.missing: "mean" is for a number that is standardised: add standardize = true
dep_delay = -> "a{1..2" =
    :13: columns."a{1..2": expected braces in pairs, not nested, got 'a{1..2'
dep_delay = -> "{x,carrier}" =
    :13: columns."{x,carrier}": given twice
number" -> numbr"
    :13: columns.dep_delay.kind: expected one of $KINDS, got "numbr"; did you mean number?
dense = 64 -> dense = 0
    :18: model.layers[0].dense: expected a whole number from 1 to 65535, got 0
"relu" -> "rely"
    :18: model.layers[0].activation: expected $ACTIVATIONS, got "rely"; did you mean relu?
activation -> activate
    :18: model.layers[0].activate: unknown option of dense; allowed: dense, activation, init; did you mean
    activation?
learning_rate -> bta1
    :23: optimizer.bta1: unknown setting of adam; allowed: name, learning_rate, beta1, beta2, epsilon,
    $OF_ALL_OPTIMIZERS, groups; did you mean beta1?
learning_rate = 3e-3 -> beta1 = 1
    :23: optimizer.beta1: expected a number from 0 below 1, got 1
{ dense -> { dens
    :18: model.layers[0]: expected a layer, one of $LAYERS, got { dens = 64, activation = "relu" }; did you mean
    dense?
[ { dense = 64, activation = "relu" } ] -> [ 64 ]
    :18: model.layers[0]: expected a table, got 64
averaging_frequency = 4 -> min_batch_rows = 300
    :28: train.min_batch_rows: expected at most 256, the rows of a full-grown batch, got 300
missing = "skip" -> classes = [0.5, 1]
    :15: columns.late.classes: expected an array of texts or of booleans or of whole numbers or a whole number, got
    [0.5, 1]
missing = "skip" -> classes = 3
    :15: columns.late.classes: expected 2 for loss 'binary_cross_entropy', got 3; more are for softmax_cross_entropy
"binary_cross_entropy" -> "softmax_cross_entropy"
    :15: columns.late.classes: expected their names, or how many, for loss 'softmax_cross_entropy', got none
"binary_cross_entropy" -> "hubr"
    :19: model.loss: expected one of $LOSSES, got "hubr"; did you mean huber?
"binary_cross_entropy" -> { name = "huber", dlta = 1 }
    :19: model.loss.dlta: unknown setting of huber; allowed: name, delta; did you mean delta?
"binary_cross_entropy" -> { name = "huber", delta = 0 }
    :19: model.loss.delta: expected a number above 0, got 0
"binary_cross_entropy" -> { name = "binary_cross_entropy", class_weights = [1, 2, 3] }
    :19: model.loss.class_weights: expected 2 numbers, one for each class, got [1, 2, 3]
"binary_cross_entropy" -> { name = "binary_cross_entropy", class_weights = [1, 0] }
    :19: model.loss.class_weights: expected a number above 0 for each class, as an array in their order or as a
    table by their names, got [1, 0]
""", TRAIN=TRAIN, SECTIONS=SECTIONS, FORMATS=", ".join(format_names()), OPTIMIZERS=", ".join(optimizers.names()),
    KINDS=", ".join(dict.fromkeys([*features(), *HOLDS])), ACTIVATIONS=layers.options("dense")["activation"].takes(),
    OF_ALL_OPTIMIZERS=", ".join(optimizers.COMMON), LAYERS=", ".join(layers.names()), LOSSES=", ".join(losses.names()),
)  # fmt: skip
OF_TWO_PLACES = (
    'missing = "skip" }\n\n[model]\nlayers = [ { dense = 64, activation = "relu" } ]\nloss = "binary_cross_entropy"',
    'missing = "skip", classes = ["cat", "dog"] }\n\n[model]\nlayers = []\n'
    'loss = { name = "softmax_cross_entropy", class_weights = { cat = 2, dgo = 3 } }',
    ':19: model.loss.class_weights: expected names of classes, cat, dog, got "dgo"; did you mean dog?',
)


@over(("old", "new", "message"), [*CASES, OF_TWO_PLACES])
def test_message(job_text: str, old: str, new: str, message: str) -> None:
    assert old in job_text
    with pytest.raises(JobMistakes) as caught:
        Job.parse(job_text.replace(old, new, 1), name="flights.toml")
    assert [str(mistake) for mistake in caught.value.mistakes] == [f"flights.toml{message}"]
    assert caught.value.exit_code == 2


def test_all_mistakes_at_once_in_the_order_of_the_file(job_text: str) -> None:
    changes = {"json": "jsn", "workers = 2": "workers = 0", "bootstrap.servers": "group.id", '"label': '"labl'}
    for old, new in changes.items():
        job_text = job_text.replace(old, new, 1)
    with pytest.raises(JobMistakes) as caught:
        Job.parse(job_text, name="flights.toml", sets=["train.seed=-1"], environment={"STREAMTRAIN_TRIAN__SEED": "1"})
    places = [mistake.where for mistake in caught.value.mistakes]
    lines = [f"flights.toml:{line}" for line in (4, 10, 15, 27)]
    assert places == [*lines, "--set", "environment STREAMTRAIN_TRIAN__SEED"]
    assert str(caught.value).startswith("flights.toml has 6 mistakes:\n  flights.toml:4: ")


def test_mistakes_that_span_settings_are_found_beside_others(job_text: str) -> None:
    text = job_text.replace('"json"', '"jsn"').replace("prefetch_buffer = 24", "prefetch_buffer = 3")
    with pytest.raises(JobMistakes) as caught:
        Job.parse(text)
    assert [mistake.path for mistake in caught.value.mistakes] == ["records.format", "train.prefetch_buffer"]


def test_text_that_is_not_toml() -> None:
    with pytest.raises(JobMistakes, match=r"flights.toml: not valid TOML: .* \(at line 2, column 5\)"):
        Job.parse("a = 1\nb = = 2\n", name="flights.toml")


@over(
    ("text", "message"),
    [
        ("train.workers", '--set: expected section.name=value, got "train.workers"'),
        ("train=4", '--set: expected section.name=value, got "train=4"'),
        ("=4", '--set: expected section.name=value, got "=4"'),
        ("tran.x=4", f"--set: tran: unknown section; allowed: {SECTIONS}; did you mean train?"),
        ("train.workers=x", '--set: train.workers: expected a whole number from 1 to 64, got "x"'),
    ],
)
def test_set(job_text: str, text: str, message: str) -> None:
    with pytest.raises(JobMistakes) as caught:
        Job.parse(job_text, sets=[text])
    assert [str(mistake) for mistake in caught.value.mistakes] == [message]


def test_no_such_file() -> None:
    with pytest.raises(UserMistake, match=r"nowhere\.toml: cannot be read as a job file: No such file"):
        Job.load("nowhere.toml")


def test_mistakes_travel_between_processes(job_text: str) -> None:
    with pytest.raises(JobMistakes) as caught:
        Job.parse(job_text.replace('"json"', '"jsn"'))
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.mistakes == caught.value.mistakes and str(again) == str(caught.value)


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("train.average_optimizer_state=false", "train.average_optimizer_state: expected true: hosts exchange"),
        ("train.early_stopping={rows=1}", "train.early_stopping: expected no early stopping: no host sees all scores"),
        ("train.report_score_after_averaging=true", "train.report_score_after_averaging: expected false: no host has"),
        ("model.layers=[{dense=6000},{dense=9000}]", "train.hosts: expected a model state of at most 500 MB"),
    ],
)  # fmt: skip
def test_many_hosts_refuse_what_they_cannot_share(job_text: str, setting: str, expected: str) -> None:
    """Each is refused by name, with what to do; one host may have it."""
    sets = [setting, "publish.interval=1h"]
    assert Job.parse(job_text, sets=sets).train.hosts == "one"
    with pytest.raises(JobMistakes) as caught:
        Job.parse(job_text, sets=[*sets, "train.hosts=many"])
    (mistake,) = map(str, caught.value.mistakes)
    assert expected in mistake and 'or train on one machine: hosts = "one", got ' in mistake
    assert Job.parse(job_text, sets=["train.hosts=many"]).train.hosts == "many"


def test_a_snapshot_rate_above_100_megabytes_a_second_is_a_warning(job_text: str) -> None:
    job = Job.parse(
        job_text, name="flights.toml", sets=["publish.interval=1ms", "model.layers=[{dense=4000},{dense=900}]"]
    )
    (warning,) = job.warnings
    assert warning.where == "--set" and warning.path == "publish.interval" and "at most 100 MB/s" in str(warning)
    assert not Job.parse(job_text).warnings


DOCUMENT = '''# a comment = [1]
name = "a \\" # not a comment"

[kafka]
bootstrap.servers = 'x#y'          # dotted
"quoted.key" = """many
lines = "2"
"""
literal = \'\'\'[not]
a.table\'\'\'

[model]
layers = [ # [
  { dense = 64, activation = "relu" },
  { dense = 32, nested = [[1, 2],
    [3]] },   # }
]
when = 2026-01-31T00:00:00Z
empty = {}
none = []
[a."b.c".d]
e = -1.5e3
[[runs]]
x = 1
[[runs]]
x = 2
[runs.inner]
y = true
'''


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in inside:
        yield (*path, key)
        yield from paths(inner, (*path, key))


def test_every_path_has_a_line() -> None:
    found = toml_lines(DOCUMENT)
    assert set(found) == set(paths(tomllib.loads(DOCUMENT)))
    # Windows' line ends, and none at the end of the last line
    assert toml_lines("a = 1\r\nb = [\r\n 2]") == {("a",): 1, ("b",): 2, ("b", 0): 3}


@over(
    ("path", "line"),
    [
        (("name",), 2),
        (("kafka", "bootstrap", "servers"), 5),
        (("kafka", "quoted.key"), 6),
        (("kafka", "literal"), 9),
        (("model", "layers"), 13),
        (("model", "layers", 0, "activation"), 14),
        (("model", "layers", 1), 15),
        (("model", "layers", 1, "nested", 1, 0), 16),
        (("a", "b.c", "d", "e"), 22),
        (("runs", 0, "x"), 24),
        (("runs", 1, "x"), 26),
        (("runs", 1, "inner", "y"), 28),
    ],
)
def test_lines(path: Path, line: int) -> None:
    assert toml_lines(DOCUMENT)[path] == line
