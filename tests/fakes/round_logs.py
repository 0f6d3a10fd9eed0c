"""A made-up round log that keeps to its terms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streamtrain._native import CloseReason
from streamtrain.topics.manifest import Run, Slot
from streamtrain.topics.rounds import RANGE_DTYPE, ROUND_DTYPE, SLOT_DTYPE, RoundLog
from streamtrain.topics.terms import Terms
from streamtrain.topics.topic import sha256


def example_terms(first_round: int = 10, **changes: object) -> Terms:
    made = Terms(
        first_round=first_round,
        learning_rate={"name": "constant", "rate": 3e-3},
        optimizer={"name": "adam", "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8},
        average_optimizer_state=True,
        averaging_frequency=50_000,
        workers=2,
        slot=Slot(256, 64),
        batch_growth={"name": "off"},
        format={"name": "json"},
        columns_digest=sha256(b"columns"),
        model_digest=sha256(b"model"),
        topic_id="2Zk7Jx8LTPO4jX2vS0Q1fg",
        seed=7,
        build="0.1.0+abcdef",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def example_log(round_count: int = 3, slots_per_round: int = 2, ranges_per_slot: int = 2) -> RoundLog:
    slot_count = round_count * slots_per_round
    rounds = np.zeros(round_count, ROUND_DTYPE)
    rounds["round"] = np.arange(round_count) + 10
    rounds["first_slot"] = np.arange(round_count) * slots_per_round + 100
    rounds["slots"], rounds["workers"] = slots_per_round, 2
    rounds["closed_by"] = CloseReason.INTERVAL
    rounds["newest_event_ms"] = 1_749_999_999_000 + np.arange(round_count)
    slots = np.zeros(slot_count, SLOT_DTYPE)
    slots["slot"] = np.arange(slot_count) + 100
    slots["rows"] = slots["trained"] = 256
    slots["range_count"], slots["loss_sum"], slots["weight_sum"] = ranges_per_slot, 70.5, 256
    ranges = np.zeros(slot_count * ranges_per_slot, RANGE_DTYPE)
    ranges["from_offset"] = np.arange(len(ranges)) * 128
    ranges["to_offset"] = ranges["from_offset"] + 128
    ranges["trained"], ranges["record_rows"] = 128, -1
    return RoundLog(
        job="flights",
        lineage="ab" * 16,
        run=Run(2, "cd" * 16),
        version=8,
        digest=sha256(b"snapshot"),
        terms=(example_terms(),) if round_count else (),
        metrics={"total": {"log_loss": 0.28, "auc": float("nan")}},
        created_ms=1_750_000_000_000,
        worker_deaths=1,
        rounds=rounds,
        slots=slots,
        ranges=ranges,
    )
