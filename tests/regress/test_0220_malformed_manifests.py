"""A manifest with right digests that holds no model: a predictor keeps the one it has, or waits; a bounded run ends."""

from __future__ import annotations

import copy
import itertools
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from prediction_bench import Bench, running
from publisher import example_manifest
from served_model import ServedModel
from small_model import SmallModel
from waiting import wait_for

from streamtrain.clients.live_model import LiveModel
from streamtrain.columns.served import Served, schema_and_model
from streamtrain.compute.snapshot import model_payload
from streamtrain.errors import SnapshotError
from streamtrain.run.roles import predictor
from streamtrain.topics.manifest import decode, encode

JUNK: tuple[Any, ...] = (
    None, [], ["abc"], {}, {"name": 3}, "", "abc", 0, -1, 1 << 62, 2.5, float("nan"), True, [[]], [{}], [None],
)  # fmt: skip
MALFORMED: dict[str, dict[str, Any]] = {
    "columns are texts": {"schema": {"columns": ["abc"], "loss": "binary_cross_entropy"}},
    "loss is a list": {"schema": {"columns": [], "loss": []}},
    "no schema": {"schema": {}},
    "no model": {"model_spec": {}},
}


def put_malformed(served: ServedModel, **changes: Any) -> None:
    served.version += 1
    payload = model_payload(served.model.layout, served.state(served.version))
    whole = {"model_spec": served.spec, "schema": served.schema.to_dict(), "untrained": False, **changes}
    served.publisher.put(served.version, payload, **whole)


@pytest.mark.parametrize("changes", MALFORMED.values(), ids=list(MALFORMED))
def test_a_predictor_keeps_the_model_it_has(kafka: Any, changes: dict[str, Any], caplog: Any) -> None:
    bench = Bench(kafka.bootstrap, kafka.fresh_name("malformed"))
    served = ServedModel(bench.bootstrap, bench.job)
    served.put()
    with running(bench.config()) as counters:
        wait_for(lambda: counters["version"] == 1)
        put_malformed(served, **changes)
        wait_for(lambda: "keeping snapshot 1" in caplog.text)
        bench.ask({"a": 1, "b": 1}, "kept")
        bench.flush()
        wait_for(lambda: counters["requests"] == 1)
        served.put()
        wait_for(lambda: counters["version"] == 3)
    assert bench.answers()["kept"].version == 1


def test_a_predictor_without_a_model_waits_for_the_next(kafka: Any, caplog: Any) -> None:
    bench = Bench(kafka.bootstrap, kafka.fresh_name("malformed"))
    served = ServedModel(bench.bootstrap, bench.job)
    put_malformed(served, **MALFORMED["columns are texts"])
    bench.ask({"a": 1, "b": 1}, "waits")
    bench.flush()
    with running(bench.config()) as counters:
        wait_for(lambda: "waiting for the next" in caplog.text)
        served.put()
        wait_for(lambda: counters["requests"] == 1)
    assert bench.answers()["waits"].version == 2


def test_a_live_model_keeps_the_model_it_has_and_says_why_once(kafka: Any, caplog: Any) -> None:
    job = kafka.fresh_name("malformed")
    served = ServedModel(kafka.bootstrap, job)
    served.put()
    with LiveModel(job, kafka.bootstrap) as model:
        model.wait_ready()
        for changes in MALFORMED.values():
            put_malformed(served, **changes)
            wait_for(lambda: f"snapshot {served.version} of {job}: expected the columns and model" in caplog.text)
        assert model.version == 1 and model.predict({"a": 1, "b": 1}) and model.error is not None
        served.put()
        wait_for(lambda: model.version == served.version)
    assert "Traceback" not in caplog.text
    assert len([record for record in caplog.records if "keeping snapshot 1" in record.message]) == len(MALFORMED)


def test_a_bounded_run_without_a_model_ends_with_exit_code_1(kafka: Any) -> None:
    bench = Bench(kafka.bootstrap, kafka.fresh_name("malformed"))
    served = ServedModel(bench.bootstrap, bench.job)
    put_malformed(served, **MALFORMED["columns are texts"])
    for config in (bench.config(until_end=True), bench.config(snapshot=1)):
        with pytest.raises(SnapshotError, match="expected the columns and model of a job") as error:
            predictor.answer(config, threading.Event())
        assert error.value.exit_code == 1


def test_a_bounded_run_does_not_wait_for_a_whole_snapshot_either(kafka: Any) -> None:
    bench = Bench(kafka.bootstrap, kafka.fresh_name("damaged"))
    served = ServedModel(bench.bootstrap, bench.job)
    payload = model_payload(served.model.layout, served.state(1))
    served.publisher.put_damaged(1, payload, lambda messages: messages[1:])
    with pytest.raises(SnapshotError, match="missing"):
        predictor.answer(bench.config(until_end=True), threading.Event())


def altered(given: Any) -> Iterator[Any]:
    """`given` with one part of it, at any depth, left out or replaced by each piece of junk."""
    yield from JUNK
    if isinstance(given, Mapping):
        for name in given:
            yield {other: value for other, value in given.items() if other != name}
            for value in altered(given[name]):
                yield {**given, name: value}
    elif isinstance(given, list):
        for at in range(len(given)):
            yield [*given[:at], *given[at + 1 :]]
            for value in altered(given[at]):
                yield [*given[:at], value, *given[at + 1 :]]


def test_whatever_a_manifest_holds_it_makes_a_scorer_or_a_snapshot_error() -> None:
    small = SmallModel.make()
    good = {"schema": small.schema.to_dict(), "model_spec": small.spec}
    payload = small.payload(3)
    cases = itertools.chain.from_iterable(
        ({**good, name: value} for value in altered(good[name]) if isinstance(value, Mapping)) for name in good
    )
    refused = made = 0
    for case in cases:
        manifest = example_manifest(3, shelf="s/0003", **copy.deepcopy(case))
        manifest = decode(encode(manifest))
        try:
            served = Served.of(manifest, b"d" * 32, payload)
            served.request_scorer("json", rows=256).score("asked", [b"[1,2,3,4]"])
            made += 1
        except SnapshotError:
            refused += 1
    assert refused > 500 and made > 10


def test_columns_and_model_that_disagree_are_refused() -> None:
    small = SmallModel.make()
    smaller = small.schema.to_dict()
    smaller["columns"] = [{**each, "buckets": 8} if each.get("buckets") else each for each in smaller["columns"]]
    with pytest.raises(SnapshotError, match="expected the model's input to be that of its columns"):
        schema_and_model(example_manifest(3, model_spec=small.spec, schema=smaller))
    spec = {**small.spec, "loss": "mean_squared_error"}
    with pytest.raises(SnapshotError, match="expected the model's loss"):
        schema_and_model(example_manifest(3, model_spec=spec, schema=small.schema.to_dict()))
