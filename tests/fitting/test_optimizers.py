"""Every optimizer learns, at its usual rate."""

from __future__ import annotations

from looped import over

import streamtrain
from streamtrain.compute import optimizers
from tests.fitting.example import TABLES, columns


@over("name", optimizers.names(), sampled=True)
def test_it_learns_at_its_usual_rate(name: str) -> None:
    fitted = streamtrain.fit({**TABLES, "optimizer": {"name": name}}, columns(20_000))
    metrics = fitted.manifest.metrics
    assert metrics["total"]["log_loss"] < 0.6 * metrics["total"]["constant_log_loss"], metrics
    assert metrics["window"]["accuracy"] > 0.87, metrics
