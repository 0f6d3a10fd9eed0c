"""A call of librdkafka that never returns costs the exactly-once predictor one batch's time, never the batch."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Any

import pytest
from failing_librdkafka import built, run_predictor
from prediction_bench import PARTITIONS, Bench
from served_model import ServedModel
from waiting import wait_for

spawn = multiprocessing.get_context("spawn")
TIMEOUT_MS = 1_000  # of a transaction, from which the predictor's patience follows


@pytest.fixture(scope="module")
def librdkafka(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("librdkafka"))


@pytest.mark.parametrize(
    "faults",
    [
        "send_offsets_to_transaction=3!,abort_transaction=1",
        "commit_transaction=3,destroy=1",  # of the other producer: the stuck thread has one for itself
        *(
            pytest.param(fault, marks=pytest.mark.full)
            for fault in ("init_transactions=2", "send_offsets_to_transaction=3", "commit_transaction=3")
        ),
    ],
)
def test_every_request_is_answered_once(kafka: Any, librdkafka: Path, faults: str) -> None:
    bench = Bench(kafka.bootstrap, kafka.fresh_name("left-behind"))
    ServedModel(bench.bootstrap, bench.job).put()
    stop = spawn.Event()
    member = spawn.Process(target=run_predictor, args=(librdkafka, faults, TIMEOUT_MS, bench.config(), stop))
    member.start()
    try:
        for batch in range(1, 7):
            for i in range(30):
                bench.ask([i, 1], f"{batch}.{i}", partition=i % PARTITIONS)
            bench.flush()
            wait_for(lambda batch=batch: len(bench.counts()) == 30 * batch)
        stop.set()
        member.join(240)
        assert member.exitcode == 0
    finally:
        member.kill()
    assert bench.counts().total() == 6 * 30
