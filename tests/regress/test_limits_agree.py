"""The job file and the engine have the same limits: more workers, partitions, classes or columns are refused early."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from streamtrain import _native
from streamtrain.columns.schema import Schema
from streamtrain.compute.model import Model
from streamtrain.errors import UserMistake
from streamtrain.job.sections import TopicSettings, Train
from streamtrain.kafka.admin import TopicState, _mistakes
from streamtrain.topics.topic import TopicWish


def arena(workers: int) -> _native.Arena:
    model = Model({"input": {"numbers": 1}, "layers": [], "loss": "mean_squared_error", "optimizer": {"name": "sgd"}})
    slots = _native.SlotLayout.make(1, 1, [("numbers", "f32", 1), ("label", "f32", 1), ("weight", "f32", 1)])
    return _native.Arena.create(workers, 1, 2 * workers, slots, model.layout)


def test_workers() -> None:
    most = _native.MAX_WORKERS
    for take in (arena, lambda count: Train(workers=count)):
        take(most)
        with pytest.raises(ValueError):
            take(most + 1)


def test_partitions() -> None:
    most = _native.MAX_PARTITIONS
    assert TopicSettings(partitions=most).partitions == most
    with pytest.raises(ValidationError):
        TopicSettings(partitions=most + 1)
    ring = _native.CoordinatorEnd(arena(1))
    ring.begin(round=-1, learning_rate=0.1, positions=[(at, 0, 0) for at in range(most)])
    with pytest.raises(ValueError, match="too many partitions"):
        ring.begin(round=-1, learning_rate=0.1, positions=[(at, 0, 0) for at in range(most + 1)])
    state = TopicState("r", "id", most + 1, 1, {}, "delete", None)
    assert _mistakes(TopicWish("records", "r", 4), state) == ["topic r: expected at most 4096 partitions, got 4097"]


def table(numbers: int, classes: Any = None) -> Schema:
    loss = "softmax_cross_entropy" if classes else "mean_squared_error"
    label = {"role": "label"} | ({"classes": classes} if classes else {})
    return Schema.from_columns({f"x{{1..{numbers}}}": {}, "y": label}, loss)


def test_classes_and_columns() -> None:
    most = _native.MAX_CLASSES
    spec = {"layers": [], "loss": "softmax_cross_entropy", "optimizer": {"name": "sgd"}}
    assert Model({**spec, "input": table(1, most).engine_inputs()}).parsed.input.classes == most
    for beyond in (most + 1, [str(at) for at in range(most + 1)]):
        with pytest.raises(UserMistake, match="expected 2 to 65,535 classes, got 65536"):
            table(1, beyond)
    assert len(table(_native.MAX_COLUMNS - 1).columns) == _native.MAX_COLUMNS
    with pytest.raises(UserMistake, match="columns: expected at most 65,535, got 65,536"):
        table(_native.MAX_COLUMNS)
