"""Answers of a model to rows, from a program and from the predict command, in one form."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from confluent_kafka import Producer

from streamtrain import read_predictions
from streamtrain.columns.formats import encode_records
from tests.e2e.harness import LiveJob


def toml(value: Any) -> str:
    """A value as a job file has it."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(name)} = {toml(each)}" for name, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def answered(answers: list[Any]) -> list[float | None]:
    """Predictions as float32; None of a row that has none."""
    found = [each.get("prediction") if isinstance(each, dict) else None for each in answers]
    return [None if each is None else float(np.float32(each)) for each in found]


def predicted(job: LiveJob, asked: list[dict[str, Any]]) -> list[float | None]:
    """The same from the requests and predictions topics."""
    producer = Producer({"bootstrap.servers": job.bootstrap})
    for number, row in enumerate(asked):
        (value,) = encode_records(job.settings["format"], job.job.schema, [row])
        producer.produce(f"{job.name}.requests", value=value, key=str(number), partition=0)
    assert producer.flush(240) == 0
    assert job.here("predict", "--until-end").returncode == 0
    found = {int(each.key): each.prediction
             for each in read_predictions(job.name, bootstrap=job.bootstrap, until_end=True)}  # fmt: skip
    return answered([found[number] for number in range(len(asked))])
