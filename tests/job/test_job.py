"""A job file, the environment and flags together, section by section: values, defaults, mistakes at their place."""

from __future__ import annotations

import json
import pickle
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from example_format import with_schema
from looped import over

from streamtrain.checks.verify.terms import _format
from streamtrain.columns import formats
from streamtrain.columns.formats import record_format
from streamtrain.columns.schema import Schema
from streamtrain.compute import averagings, losses, optimizers
from streamtrain.compute.model import Model
from streamtrain.compute.options import DURATION_UNITS_MS
from streamtrain.errors import UserMistake
from streamtrain.job import Job, JobMistakes, settings_table
from streamtrain.job.affinity import core_lists
from streamtrain.job.file import SECTIONS
from streamtrain.job.units import SIZE_UNITS_BYTES, format_amount, parse_amount
from tests.compute.conftest import spec_of
from tests.job.conftest import replacements


def test_values_and_defaults(job_text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMTRAIN_TRAIN__WORKERS", "7")  # read only where it is given
    job = Job.parse(job_text)
    assert job.train.workers == 2
    assert job.name == "flights"
    assert (job.train.batch_rows, job.train.round_interval_s, job.train.seed) == (256, 0.25, 0)
    assert (job.publish.interval_s, job.publish.keep, job.publish.pending_bytes) == (1.0, 8, 64 * 2**20)
    assert job.publish.archive is not None and job.publish.archive.every_s == 600.0
    assert job.predict.delivery == "exactly_once"
    assert job.records.start == "earliest" and job.records.max_dead_letter_share == 0.1


def test_flags_stand_over_the_environment_over_the_file(job_text: str) -> None:
    environment = {
        "STREAMTRAIN_TRAIN__WORKERS": "3",
        "STREAMTRAIN_TRAIN__SEED": "7",
        "STREAMTRAIN_TRAIN__ROUND_INTERVAL": "off",
        "STREAMTRAIN_PUBLISH__ARCHIVE__KEEP": "2",
        "STREAMTRAIN_KAFKA__SASL_PASSWORD": "1e3",
        "STREAMTRAIN_KAFKA__CONSUMER__FETCH_MIN_BYTES": "9",
        "STREAMTRAIN_KAFKA__BOOTSTRAP_SERVERS": "other:1",
        "STREAMTRAIN_NAME": "renamed",
        "STREAMTRAIN_ISA": "v3",
    }
    job = Job.parse(
        job_text, environment=environment, sets=["train.seed=8", "topics.records.partitions=9"], bootstrap="b:2"
    )
    assert (job.train.workers, job.train.seed, job.train.round_interval_s) == (3, 8, None)
    assert job.publish.archive is not None and (job.publish.archive.keep, job.publish.archive.every_s) == (2, 600.0)
    assert job.name == "renamed" and job.topic("records").partitions == 9
    assert job.kafka_producer() == {"bootstrap.servers": "b:2", "sasl.password": "1e3"}
    assert job.kafka_consumer() == {"bootstrap.servers": "b:2", "sasl.password": "1e3", "fetch.min.bytes": "9"}


@over(
    ("value", "start"),
    [
        ('"latest"', "latest"),
        ("2026-01-31T00:00:00Z", "2026-01-31T00:00:00+00:00"),
        ("2026-01-31", "2026-01-31T00:00:00+00:00"),
        ('"2026-01-31T01:00:00+01:00"', "2026-01-31T01:00:00+01:00"),
    ],
)
def test_start(job_text: str, value: str, start: str) -> None:
    job = Job.parse(job_text, sets=[f"records.start={value}"])
    assert job.records.start == start


def test_kafka_properties_are_flattened(job_text: str) -> None:
    text = job_text.replace(
        'bootstrap.servers = "localhost:9092"',
        '"metadata.broker.list" = "localhost:9092"\nssl = { ca.location = "ca.pem" }\nsocket.keepalive.enable = true\n'
        "[kafka.consumer]\nfetch.wait.max.ms = 5\n[kafka.producer]\nlinger.ms = 0.5",
    )
    job = Job.parse(text)
    common = {"bootstrap.servers": "localhost:9092", "ssl.ca.location": "ca.pem", "socket.keepalive.enable": "true"}
    assert job.kafka_admin() == common
    assert job.kafka_consumer() == {**common, "fetch.wait.max.ms": "5"}
    assert job.kafka_producer() == {**common, "linger.ms": "0.5"}


def test_a_side_gets_only_its_own_properties(job_text: str) -> None:
    job = Job.parse(job_text, sets=["kafka.linger.ms=5", "kafka.fetch.min.bytes=9", "kafka.client.id=me"])
    assert set(job.kafka_producer()) == {"bootstrap.servers", "client.id", "linger.ms"}
    assert set(job.kafka_consumer()) == {"bootstrap.servers", "client.id", "fetch.min.bytes"}
    assert set(job.kafka_admin()) == {"bootstrap.servers", "client.id"}


def test_topics_have_names(job_text: str) -> None:
    job = Job.parse(job_text, sets=["topics.requests=asked"])
    assert (job.topic("records").name, job.topic("records").partitions) == ("prod.flights", 4)
    assert job.topic("requests").name == "asked"
    assert job.topic("dead-letters").name == job.topic("dead_letters").name == "flights.dead-letters"


def test_the_effective_job_comes_back_without_kafka(job_text: str) -> None:
    sets = ["records.start=2026-01-31", "train.round_interval=off", "train.batch_growth=off"]
    job = Job.parse(job_text, sets=["kafka.sasl.password=hush", *sets])
    effective = json.loads(json.dumps(job.effective()))
    assert "kafka" not in effective and "hush" not in json.dumps(effective)
    again = Job.from_effective(effective)
    assert again.effective() == job.effective() and again.digest() == job.digest() and again.kafka.bootstrap == ""
    assert again.train.round_interval_s is None and again.train.batch_growth is None
    assert job.digest() != Job.parse(job_text, sets=[*sets, "train.seed=1"]).digest()
    assert job.digest() == Job.parse(job_text, sets=sets).digest()


def test_secrets_are_not_shown_and_travel_between_processes(job_text: str) -> None:
    job = Job.parse(job_text, sets=["kafka.sasl.password=hush", "kafka.producer.sasl.username=who"])
    assert "hush" not in repr(job) and "who" not in repr(job) and "sasl.password" in repr(job)
    assert pickle.loads(pickle.dumps(job)) == job


def test_a_loss_is_a_name_or_a_table_with_settings(job_text: str) -> None:
    """Filled in for the manifest, and read from there; the engine has class weights in the order of the classes."""
    bare = Job.parse(job_text.replace('"binary_cross_entropy"', '"focal"'))
    table = Job.parse(job_text.replace('"binary_cross_entropy"', '{ name = "focal", gamma = 2.0 }'))
    assert bare.effective() == table.effective()
    filled = {"name": "focal", "gamma": 2.0, "balance": 0.5}
    assert bare.effective()["model"]["loss"] == bare.model_spec()["loss"] == filled
    assert Job.parse(job_text, sets=["model.loss.name=focal"]).effective() == bare.effective()
    other = Job.parse(job_text.replace('"binary_cross_entropy"', '{ name = "focal", gamma = 3 }'))
    assert any("model.loss" in line for line in other.differences(bare.effective()))
    text = job_text.replace('"label", missing = "skip"', '"label", classes = ["a", "b", "c"]')
    weighted = '{ name = "softmax_cross_entropy", class_weights = { c = 3, a = 2 } }'
    job = Job.parse(text.replace('"binary_cross_entropy"', weighted))
    assert job.effective()["model"]["loss"]["class_weights"] == {"a": 2.0, "c": 3.0}
    assert job.model_spec()["loss"]["class_weights"] == [2.0, 1.0, 3.0]
    assert Job.from_effective(json.loads(json.dumps(job.effective()))).effective() == job.effective()


def test_the_table_has_every_section_and_tables_that_stand_for_a_value() -> None:
    takes = {setting.path: setting.takes for setting in settings_table()}
    assert {path.partition(".")[0] for path in takes} == set(SECTIONS)
    name = "columns.<column>.standardize"
    assert takes[name] == "true or false or a table" and f"{name}.half_life" in takes
    assert takes[f"{name}.clip"] == 'a number above 0 to 1000000.0 or "off"'
    assert takes[f"{name}.floor"].startswith("a number from 1e-30")


BARE = 'name = "x"\n[kafka]\nbootstrap.servers = "b"\n[columns]\na = {}\nlate = { role = "label" }\n'
OF_ALL = {name: option.default for name, option in optimizers.COMMON.items()}  # what every optimizer has
WITHOUT_DEFAULT = (
    "name", "records.schema", "records.where", "transforms", "model.graph", "model.torch",
    *(f"train.early_stopping.{name}" for name in ("no_improvement", "best_score", "rows", "epochs", "score")),
    *(f"train.early_stopping.{name}" for name in ("minimise", "held_out.files", "held_out.topic")),
)  # fmt: skip


@over("setting", settings_table, ids=lambda setting: setting.path)
def test_each_setting(setting: Any) -> None:
    """Checks that a setting has help, its default as text gives the default, and its environment name works."""
    path, default, bare = setting.path, setting.default, BARE
    assert setting.help and setting.takes
    if path in WITHOUT_DEFAULT or "<" in path or path.startswith("kafka."):
        return
    when = [setting.when] if setting.when else []
    when += ["train.early_stopping.rows=1"] if path.startswith("train.early_stopping.") else []
    if when and when[0].startswith("records.format="):
        given = with_schema(json.loads(when[0].partition("=")[2]), {"a": "number", "late": "number"})
        when += [f"records.schema='{given['schema']}'"] if isinstance(given, dict) else []
        if getattr(record_format(json.loads(when[0].partition("=")[2])), "CELLS", ()) == ("value", "pairs"):
            bare = bare.replace("a = {}", 'a = { kind = "sparse", buckets = 262144 }')
    loss = json.loads(when[0].partition("=")[2]) if when and when[0].startswith("model.loss.name=") else None
    if loss is not None and losses.label_kind(loss) == "class":
        bare = bare.replace('"label"', '"label", classes = 3')
    bare_default = json.loads(default) if default.startswith('"') else default
    by_environment = Job.parse(bare, sets=when, environment={setting.environment: bare_default})
    by_flag = Job.parse(bare, sets=[*when, f"{path}={default}"])
    assert by_environment.effective() == by_flag.effective()
    if not path.startswith("publish.archive") and not when:
        assert by_flag.effective() == Job.parse(bare).effective()


@over(
    ("path", "value"),
    [
        ("columns.<column>.missing", "7"),
        ("topics.<topic>.partitions", "3"),
        ("kafka.bootstrap.servers", "other:1"),
        ("kafka.<property>", "me"),
        ("kafka.producer.<property>", "me"),
    ],
)
def test_a_setting_under_a_name_is_reached_by_flag_and_environment(path: str, value: str) -> None:
    setting = {setting.path: setting for setting in settings_table()}[path]
    variable = setting.environment
    for stands, name in {"<column>": "a", "<topic>": "records", "<property>": "client.id"}.items():
        path = path.replace(stands, name)
        variable = variable.replace(stands.upper(), name.upper().replace(".", "_"))
    jobs = [Job.parse(BARE), Job.parse(BARE, sets=[f"{path}={value}"]), Job.parse(BARE, environment={variable: value})]
    before, by_flag, by_environment = [(job.effective(), job.kafka) for job in jobs]
    assert by_flag == by_environment != before


@over(
    ("units", "amounts"),
    [
        (DURATION_UNITS_MS, [1, 999, 1_000, 1_500, 60_000, 90_000, 86_400_000, 0.5]),
        (SIZE_UNITS_BYTES, [1, 1_000, 1_024, 64 * 2**20, 900_000, 123_457]),
    ],
)
def test_amounts_are_written_as_they_are_read(units: dict[str, int], amounts: list[float]) -> None:
    assert [parse_amount(format_amount(amount, units), units) for amount in amounts] == amounts


@over(
    ("sets", "spec"),
    [
        (["optimizer.name=sgd"], {"name": "sgd", "momentum": 0.0}),
        (["optimizer.name=sgd", "optimizer.momentum=0.5"], {"name": "sgd", "momentum": 0.5}),
        (["optimizer.name=momentum"], {"name": "momentum", "momentum": 0.9}),
        ([], {"name": "adam", "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}),
        (["optimizer.beta1=0"], {"name": "adam", "beta1": 0.0, "beta2": 0.999, "epsilon": 1e-8}),
    ],
)
def test_optimizers(job_text: str, sets: list[str], spec: dict[str, object]) -> None:
    assert Job.parse(job_text, sets=sets).model_spec()["optimizer"] == OF_ALL | spec


def test_the_model_spec_is_json_and_the_engine_takes_it(job_text: str) -> None:
    spec = Job.parse(job_text).model_spec()
    assert json.loads(json.dumps(spec)) == spec
    assert spec["layers"] == [{"dense": 64, "activation": "relu"}] and spec["average_optimizer_state"] is True
    job = Job.parse(job_text, sets=["model.layers=[{dense=2048},{dense=64}]"])
    model = Model(job.model_spec())
    assert job.state_bytes == model.state_bytes


def test_a_manifest_that_sorts_keys_keeps_the_order_of_columns(job_text: str) -> None:
    job = Job.parse(job_text)
    assert list(job.file.columns) == ["dep_delay", "carrier", "late"]
    sorted_keys = json.loads(json.dumps(job.effective(), sort_keys=True))
    assert job.differences(sorted_keys) == []
    assert list(Job.from_effective(sorted_keys).file.columns) == ["dep_delay", "carrier", "late"]
    turned = {**job.effective(), "columns": job.effective()["columns"][::-1]}
    assert job.differences(turned) == ["columns: in another order than the snapshot's: late, carrier, dep_delay"]


def test_a_program_s_tables_may_hold_tuples_and_numbers_of_numpy() -> None:
    def job(whole: Any, number: Any, flag: Any, array: Any, layers: Any) -> Job:
        graph = {"a": {"dense": whole(3), "of": "input"}, "b": {"scale": "a", "by": number(0.5)}}
        tables = {
            "columns": {"x": {"standardize": flag(True)}, "y": {"role": "label", "classes": array(["a", "b"])}},
            "model": {"layers": layers([{"dense": whole(3)}])} if layers is tuple else {"graph": graph},
            "optimizer": {"name": "sgd", "momentum": number(0.5)},
            "train": {"workers": whole(2)},
        }
        return Job.from_tables(tables)

    given = job(np.int64, np.float32, np.bool_, np.array, list)
    assert given.effective() == job(int, float, bool, list, list).effective()
    assert type(given.train.workers) is int
    assert job(int, float, bool, tuple, tuple).effective()["model"]["layers"] == [{"dense": 3}]


def test_differences_name_what_changed(job_text: str) -> None:
    job = Job.parse(job_text)
    other = Job.parse(job_text, sets=["train.workers=3", "columns.carrier.buckets=128", "columns.extra.missing=1"])
    assert job.differences(other.effective())[0] == "columns.carrier.buckets: the snapshot has 128, the job file 64"
    assert job.differences(other.effective())[1].endswith("the job file none")
    assert Job.parse(job_text, sets=["train.workers=3", "optimizer.learning_rate=1"]).differences(job.effective()) == []


PLAIN_JOB = """name = "taxi"
[kafka]
bootstrap.servers = "localhost:9092"
[columns]
distance = {}
tip = { role = "label" }
"""
TEXT = f"""{PLAIN_JOB}[train]
workers = 2
threads_per_worker = 4
affinity = "0-3;4-7"
[train.averaging]
name = "outer_nesterov"
rate = 1.5
[optimizer.schedule]
name = "cosine"
steps = 12
end = 0.1
"""
LISTS = 'expected "auto", "off", or for each worker a list of cores as taskset takes them: "0-3;4,6-7"'
NO_LISTS = ("0-3;", "0-3;4-", "3-0;1", "a;b", "", "0-3;4:2", "0-99999;1", "-1;2", "0;1-4:0", "Auto")
CASES = replacements("""
= 4 -> = 0
    :9: train.threads_per_worker: expected a whole number from 1 to 64, got 0
= 4 -> = 65
    :9: train.threads_per_worker: expected a whole number from 1 to 64, got 65
threads_per -> thread_per
    :9: train.thread_per_worker: unknown setting; allowed: batch_rows,
0-3;4-7 -> 0-3
    :10: train.affinity: expected a list for each of 2 workers, with ; between them, got 1 in 0-3
0-3;4-7 -> 0-3;4-7;8
    :10: train.affinity: expected a list for each of 2 workers, with ; between them, got 3
rate = 1.5 -> rates = 1.5
    :13: train.averaging.rates: unknown setting of outer_nesterov; allowed: name,
rate = 1.5 -> momentum = 1
    :13: train.averaging.momentum: expected a number from 0 below 1, got 1
"outer_nesterov" -> "outer"
    :12: train.averaging.name: expected one of
end = 0.1 -> ends = 0.1
    :17: optimizer.schedule.ends: unknown setting of cosine; allowed: name, steps, end, restarts, growth, warm_up;
    did you mean end?
end = 0.1 -> end = 2
    :17: optimizer.schedule.end: expected a number from 0 to 1, got 2
"cosine" -> "cosinus"
    :15: optimizer.schedule.name: expected one of
""")  # fmt: skip
OF_LISTS = [("0-3;4-7", text, f":10: train.affinity: {LISTS}, got ") for text in NO_LISTS]


@over(("old", "new", "message"), [*CASES, *OF_LISTS])
def test_mistakes_name_their_place(old: str, new: str, message: str) -> None:
    with pytest.raises(JobMistakes) as refused:
        Job.parse(TEXT.replace(old, new), name="job.toml")
    assert f"job.toml{message}" in str(refused.value)


def test_defaults_are_filled_in_and_go_through_a_manifest() -> None:
    job, bare = Job.parse(TEXT, sets=["optimizer.schedule.warm_up=3"]), Job.parse(PLAIN_JOB)
    effective = json.loads(json.dumps(job.effective(), sort_keys=True))
    assert Job.from_effective(effective).effective() == job.effective()
    assert (job.train.threads_per_worker, job.train.affinity) == (4, "0-3;4-7")
    assert (bare.train.threads_per_worker, bare.train.affinity) == (1, "off")
    averaging = averagings.normal("outer_nesterov", {"rate": 1.5})
    assert averaging["rate"] == 1.5 and 0 <= averaging["momentum"] < 1
    assert effective["train"]["averaging"] == job.model_spec()["averaging"] == averaging
    assert bare.model_spec()["averaging"] == {"name": averagings.DEFAULT}
    schedule: dict[str, Any] = {"name": "cosine", "steps": 12, "end": 0.1, "restarts": False, "growth": 1, "warm_up": 3}
    assert effective["optimizer"]["schedule"] == schedule and job.schedule == schedule | {"rate": 1e-3}
    assert bare.schedule == {"name": "constant", "rate": 1e-3, "warm_up": 0}


def test_words_for_a_missing_cell_go_through_a_manifest_and_are_no_values() -> None:
    tables: dict[str, Any] = {"columns": {"x": {}, "y": {"role": "label"}}}
    plain, own = (Job.from_tables({**tables, "records": {"missing_words": words}}) for words in ([], ["gone", "n.v."]))
    assert Schema.from_dict(own.schema.to_dict()) == own.schema and own.schema.for_requests().missing_words
    assert "missing_words" not in plain.schema.to_dict() and plain.schema.digest() != own.schema.digest()
    for word in ("", " x", "-999", "1e5", "12 %", "1.234,5", "True", "off"):
        with pytest.raises(JobMistakes, match=r"records\.missing_words: expected texts"):
            Job.from_tables({**tables, "records": {"missing_words": ["gone", word]}})


@over(
    ("text", "cores"),
    [
        ("off", []), ("auto", []), ("0", [[0]]), ("0-3;4-7", [[0, 1, 2, 3], [4, 5, 6, 7]]),
        ("3,1,2-3;0", [[1, 2, 3], [0]]), ("0-7:2,9", [[0, 2, 4, 6, 9]]), ("8191", [[8191]]), ("1, 3; 2", [[1, 3], [2]]),
    ],
)  # fmt: skip
def test_lists_are_read_as_taskset_reads_them(text: str, cores: list[list[int]]) -> None:
    assert core_lists(text) == cores


@over("averaging", ["mean", {"name": "men"}, {"name": "mean", "rate": 1}, {"rate": 1}])
def test_a_manifest_with_another_averaging_is_refused(averaging: object) -> None:
    with pytest.raises(UserMistake, match=r"model\.averaging|averaging: expected one of mean"):
        Model({**spec_of(), "averaging": averaging})


OF_NETWORK = """name = "x"
[kafka]
bootstrap.servers = "b"
[columns]
a = {}
y = { role = "label" }
[model]
torch = "NAME:Net"
"""


def marked(folder: Path, name: str) -> str:
    """A module that leaves a trace when it is imported."""
    (folder / f"{name}.py").write_text(f"import sys\nsys.{name} = True\nNet = 3\n")
    return OF_NETWORK.replace("NAME", name)


def test_a_manifest_imports_nothing_nor_a_job_file_that_may_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(JobMistakes, match=r"model\.torch: expected what the module is, as a table"):
        Job.parse(marked(tmp_path, "of_a_manifest"), imports=False)
    settings: dict[str, Any] = Job.parse(OF_NETWORK.replace('torch = "NAME:Net"\n', "")).effective()
    settings["model"]["torch"] = "of_a_manifest:Net"
    with pytest.raises(JobMistakes, match=r"model\.torch: expected what the module is, as a table"):
        Job.from_effective(settings)
    assert not hasattr(sys, "of_a_manifest")


def test_a_job_file_imports_what_lies_beside_it(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")
    (tmp_path / "job.toml").write_text(marked(tmp_path, "beside_a_job"))
    with pytest.raises(JobMistakes, match=r"job.toml:8: model.torch: .*expected a class or a function, got int"):
        Job.load(tmp_path / "job.toml")
    assert hasattr(sys, "beside_a_job")


LAYERS, WITH_GRAPH = "layers = [ { dense = 3 } ]", 'graph.a = { dense = 3, of = "input" }'
TORCH = 'torch = "any:Net"'


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (f"{TORCH}\n{LAYERS}", ":9: model.layers: expected none beside a PyTorch module, which is the whole network"),
        (f"{TORCH}\n{WITH_GRAPH}", "model.graph: expected none beside a PyTorch module"),
        (f"{LAYERS}\n{WITH_GRAPH}", "model.graph: expected none beside layers, which are the whole network"),
    ],
)
def test_two_networks_are_one_too_many(model: str, problem: str) -> None:
    with pytest.raises(JobMistakes, match=re.escape(problem)) as error:
        Job.parse(OF_NETWORK.replace('torch = "NAME:Net"', model))
    assert len(error.value.mistakes) == 1
    with pytest.raises(JobMistakes, match=r"model\.layers: expected none beside a PyTorch module"):
        Job.parse(OF_NETWORK.replace('torch = "NAME:Net"', LAYERS), module=lambda: None)  # as is a module of a program


ROW = {"type": "record", "name": "Row", "fields": [{"name": "x", "type": "float"}, {"name": "y", "type": "int"}]}
BASE = f"""
name = "flights"
[kafka]
bootstrap.servers = "localhost:9092"
[records]
format = "avro"
schema = '{json.dumps(ROW)}'
[columns]
x = {{}}
y = {{ role = "label" }}
"""


def job(registry: str = "", **given: Any) -> Job:
    return Job.parse(BASE + registry, name="flights.toml", **given)


def test_properties_are_flattened_and_kept_apart() -> None:
    config = job(
        '[registry]\nurl = "http://me:secret@registry:8081/v7"\nbasic.auth.user.info = "a:hidden"\ntimeout = 5'
    )
    assert config.registry.properties == {
        "url": "http://me:secret@registry:8081/v7", "basic.auth.user.info": "a:hidden", "timeout": 5,
    }  # fmt: skip
    text = json.dumps(config.effective()) + repr(config) + str(config.registry)
    assert "secret" not in text and "hidden" not in text
    assert config.registry.address == "http://registry:8081/v7"
    assert "registry" not in config.effective() and not Job.from_effective(config.effective()).registry
    assert any(each.path == "registry.<property>" for each in settings_table())


def test_with_a_registry_records_have_its_frame_unless_they_say_otherwise() -> None:
    url = '[registry]\nurl = "http://r"'
    assert job().records.named["frame"] == "none" and job(url).records.named["frame"] == "registry"
    assert Job.from_effective(job(url).effective()).records.named["frame"] == "registry"
    bare = Job.parse(BASE.replace("[columns]", 'frame = "none"\n[columns]') + url)
    assert bare.records.named["frame"] == "none"


def test_a_frame_without_a_registry_is_a_mistake() -> None:
    """A job with this frame would wait for its records forever.

    A manifest's job has no registry of its own.
    """
    with pytest.raises(JobMistakes) as caught:
        Job.parse(BASE.replace("[columns]", 'frame = "registry"\n[columns]'), name="flights.toml")
    (mistake,) = caught.value.mistakes
    assert str(mistake) == (
        'flights.toml:8: records.frame: expected a [registry] with a url, where its ids are known, or frame = "none", '
        'got "registry"'
    )


def test_environment_and_flags_are_stronger() -> None:
    url = '[registry]\nurl = "http://file"'
    found = job(url, environment={"STREAMTRAIN_REGISTRY__URL": "http://env"})
    assert found.registry.properties["url"] == "http://env"
    found = job(
        url, environment={"STREAMTRAIN_REGISTRY__BASIC_AUTH_USER_INFO": "a:b"}, sets=["registry.url=http://flag"]
    )
    assert found.registry.properties == {"url": "http://flag", "basic.auth.user.info": "a:b"}


@over(
    ("registry", "message"),
    [
        ('[registry]\nurl = "registry:8081"', 'url: expected a URL such as "http://registry:8081", got another value'),
        ("[registry]\ntimeout = 1", 'registry.url: a URL such as "http://registry:8081"'),
        ('[registry]\nurl = ["http://secret"]', "registry.url: expected a text, a number, true or false, got list"),
        ("registry = 5", "registry"),
    ],
)
def test_mistakes_show_no_value(registry: str, message: str) -> None:
    with pytest.raises(JobMistakes) as caught:
        Job.parse(registry + BASE if registry.startswith("registry") else BASE + registry, name="flights.toml")
    assert message in str(caught.value) and "secret" not in str(caught.value), caught.value


LINES = '''"""Rows of text between separators."""

from streamtrain.compute.options import Whole, Word

HELP = "lines of cells"
OPTIONS = {
    "separator": Word(of=("comma", "tab"), default="comma", help="what stands between cells"),
    "skip_lines": Whole(least=0, most=9, default=0, help="lines before the first row"),
}
'''


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "lines.py").write_text(LINES)
    monkeypatch.setattr(formats, "__path__", [*formats.__path__, str(tmp_path)])
    settings_table.cache_clear()
    yield
    settings_table.cache_clear()


def format_job(text: str, records: str) -> Job:
    assert 'format = "json"' in text
    return Job.parse(text.replace('format = "json"', records, 1), name="flights.toml")


@pytest.mark.usefixtures("lines")
def test_a_format_takes_the_settings_its_file_declares(job_text: str) -> None:
    config = format_job(job_text, 'format = "lines"\nseparator = "tab"')
    assert config.records.named == {"name": "lines", "separator": "tab", "skip_lines": 0}
    assert Job.from_effective(config.effective()).records.named == config.records.named
    assert _format(config.effective()) == config.records.named  # verify: what a manifest tells of the terms
    rows = {each.path: each for each in settings_table()}
    assert rows["records.separator"].when == 'records.format="lines"' and rows["records.skip_lines"].default == "0"


ALLOWED = "format, where, missing_words, max_decoded_bytes, start, max_dead_letter_share"


@pytest.mark.usefixtures("lines")
@over(("_", "records", "message"), replacements("""
json -> format = "lines"; separator = "tob"
    separator: expected one of comma, tab, got "tob"; did you mean tab?
json -> format = "lines"; skip_lines = 10
    skip_lines: expected a whole number from 0 to 9, got 10
json -> format = "lines"; seperator = "tab"
    seperator: unknown setting of lines; allowed: $ALLOWED, separator, skip_lines; did you mean separator?
json -> format = "msgpack"; separator = "tab"
    separator: unknown setting; allowed: $ALLOWED
json -> format = "msgpack"; strt = "latest"
    strt: unknown setting; allowed: $ALLOWED; did you mean start?
""", ALLOWED=ALLOWED))  # fmt: skip
def test_its_mistakes_have_their_line(job_text: str, _: str, records: str, message: str) -> None:
    with pytest.raises(JobMistakes) as caught:
        format_job(job_text, records.replace("; ", "\n"))
    assert [str(mistake) for mistake in caught.value.mistakes] == [f"flights.toml:11: records.{message}"]


@pytest.mark.usefixtures("lines")
def test_a_log_that_names_what_this_build_has_not_is_refused() -> None:
    assert formats.checked({"name": "lines"}) == {"name": "lines", "separator": "comma", "skip_lines": 0}
    assert formats.checked({"name": "msgpack"}) == {"name": "msgpack"}
    for wrong in ({"name": "lines", "skip_lines": -1}, {"name": "linse"}, {}):
        with pytest.raises(UserMistake, match=r"records\."):
            formats.checked(wrong)
    with pytest.raises(UserMistake, match=r"records\.separator: unknown setting of msgpack; it takes none$"):
        formats.checked({"name": "msgpack", "separator": "tab"})


OF_HEADS = """name = "flights"
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
GRAPH = OF_HEADS[OF_HEADS.index("[model.graph]") : OF_HEADS.index("[model.heads.late]")]
HEADS = OF_HEADS[OF_HEADS.index("[model.heads.late]") : OF_HEADS.index("[train")]
OF_SECTIONS = [
    (GRAPH, "", ":12: model.heads.late.of: expected none without [model.graph]"),
    (GRAPH, f'[model]\nloss = "focal"\n{GRAPH}',
     ':11: model.loss: expected none beside heads, of which each has its own, got "focal"'),
    (GRAPH, '[model]\ntorch = "x:Net"\n', "model.heads: expected none beside a PyTorch module, which has one loss"),
    (HEADS, "", ":8: columns.delay: only one column can be the label, and late is; of several each has a head, "
     "[model.heads.delay]"),
]  # fmt: skip
HEAD_MISTAKES = replacements("""
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


@over(("old", "new", "message"), [*HEAD_MISTAKES, *OF_SECTIONS])
def test_each_mistake_has_its_line_and_the_nearest_name(old: str, new: str, message: str) -> None:
    assert old in OF_HEADS
    with pytest.raises(JobMistakes) as error:
        Job.parse(OF_HEADS.replace(old, new.replace("; ", "\n"), 1))
    assert message in str(error.value)


def test_a_job_of_heads_is_what_its_manifest_says() -> None:
    job = Job.parse(OF_HEADS)
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
    heads = Job.parse(OF_HEADS, sets=["model.heads.late.weight=0.5"], environment=variables).model.heads
    assert (heads["late"].weight, heads["delay"].weight) == (0.5, 0.25)
    rows = {each.path: each for each in settings_table()}
    assert rows["model.heads.<label>.weight"].takes == "a number above 0 to 1000000"
    assert rows["model.heads.<label>.loss.name"].default == '"binary_cross_entropy"'


def test_a_job_of_one_loss_is_written_as_it_was_before_there_were_heads(job_text: str) -> None:
    job = Job.parse(job_text)
    assert "heads" not in job.effective()["model"] and "heads" not in job.model_spec()
    assert job.schema.digest() == "da7b42a6659a83ef9feabea149ccade68f29553c2d304760d5370bfa08544b52"
