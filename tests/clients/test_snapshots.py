"""follow_snapshots on a real broker."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from publisher import Publisher
from small_model import SmallModel

from streamtrain.clients.snapshots import follow_snapshots
from streamtrain.compute.model import Model
from streamtrain.errors import KafkaUnreachable

MODEL = SmallModel.make()


def test_snapshots_come_as_arrays_by_name(kafka: Any) -> None:
    job = kafka.fresh_name("follow")
    publisher = Publisher(kafka.bootstrap, job)
    for version in (1, 2):
        made = MODEL.put(publisher, version)
    for seen, snapshot in enumerate(follow_snapshots(job, bootstrap=kafka.bootstrap)):
        views = Model(MODEL.spec).views(MODEL.state(snapshot.version))
        assert snapshot.version == 2 + seen and snapshot.manifest.job == job
        for name in ("dense0.weight", "carrier.embedding"):
            assert np.array_equal(snapshot.parameters[name], views[name])
            assert not snapshot.parameters[name].flags.writeable
        assert snapshot.statistics.keys() == {"standardize.numbers", "label.classes"}
        assert snapshot.digest == made.digest.hex() and snapshot.age_s > 0
        if seen == 2:
            break
        made = MODEL.put(publisher, 3 + seen)


def test_it_stops_when_told_and_says_when_no_broker_answers(kafka: Any) -> None:
    assert list(follow_snapshots(kafka.fresh_name("none"), kafka.bootstrap, stop=lambda: True)) == []
    with pytest.raises(KafkaUnreachable):
        next(follow_snapshots("job", "127.0.0.1:9"))
