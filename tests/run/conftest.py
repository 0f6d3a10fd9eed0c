"""A predictor's topics on a real Kafka, and what asks it."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from prediction_bench import PARTITIONS, Bench
from served_model import ServedModel

from streamtrain.run.roles import predictor

DELIVERIES = ["exactly_once", "at_least_once"]


@pytest.fixture
def bench(kafka: Any) -> Bench:
    return Bench(kafka.bootstrap, kafka.fresh_name("predict"))


@pytest.fixture
def model(bench: Bench) -> ServedModel:
    """A model without a snapshot yet."""
    return ServedModel(bench.bootstrap, bench.job)


@pytest.fixture
def served(model: ServedModel) -> ServedModel:
    """A model with one snapshot."""
    model.put()
    return model


def ask(bench: Bench, name: str, count: int, start: int = 0) -> None:
    """Sends requests "name number" by turns to the partitions."""
    for at in range(start, count):
        bench.ask([at, 1], f"{name} {at}", partition=at % PARTITIONS)
    bench.flush()


def answer_all(bench: Bench, delivery: str = "exactly_once", **changes: Any) -> dict[str, int]:
    """Answers what there is in this thread; returns the predictor's counters."""
    bench.flush()
    return predictor.answer(bench.config(delivery, until_end=True, **changes), threading.Event())
