"""A job file, the environment and flags together."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest
from example_format import with_schema
from looped import over

from streamtrain.columns.formats import record_format
from streamtrain.compute import losses, optimizers
from streamtrain.compute.model import Model
from streamtrain.compute.options import DURATION_UNITS_MS
from streamtrain.job import Job, settings_table
from streamtrain.job.file import SECTIONS
from streamtrain.job.units import SIZE_UNITS_BYTES, format_amount, parse_amount


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
    text = job_text.replace("prefetch_buffer = 24\n", "")  # three rounds
    assert Job.parse(text).train.prefetch_buffer == 24
    assert Job.parse(text, sets=["train.workers=8"]).train.prefetch_buffer == 96


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
    """Its default as text of the file gives the default; it has help; its environment name reaches it."""
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
