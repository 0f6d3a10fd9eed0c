"""All answers of one LiveModel.predict call are one snapshot's, however many rows it has and however many come."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from publisher import Publisher
from small_model import SmallModel

from streamtrain.clients.live_model import LiveModel

ROW = {"dep_delay": 3.5, "distance": 7, "hour": 2}
COLUMNS = {"dep_delay": {"standardize": True}, "distance": {}, "hour": {}, "late": {"role": "label"}}


def test_rows_of_a_call_are_predicted_by_one_snapshot(kafka: Any) -> None:
    job, model = kafka.fresh_name("live"), SmallModel.make(COLUMNS)
    publisher = Publisher(kafka.bootstrap, job)
    made = {1: model.put(publisher, 1).digest.hex()}
    columns = {name: np.full(50_000, value) for name, value in ROW.items()}
    mixed: list[int] = []
    seen: dict[int, float] = {}
    with LiveModel(job, bootstrap=kafka.bootstrap) as live:
        live.wait_ready(60)
        done = threading.Event()

        def predict() -> None:
            while not done.is_set():
                answer = live.answer(columns)
                values = {row["prediction"] for row in answer.values}
                if len(values) != 1 or seen.setdefault(answer.version, min(values)) not in values:
                    mixed.append(len(values))
                assert answer.digest == made[answer.version] and answer.age_s > 0

        threads = [threading.Thread(target=predict) for _ in range(3)]
        for thread in threads:
            thread.start()
        for version in range(2, 30):
            messages = publisher.make(
                version, model.payload(version), model_spec=model.spec, schema=model.schema.to_dict()
            )
            made[version] = messages.digest.hex()
            model.put(publisher, version)
        while live.version != 29:
            live.predict(ROW)
        done.set()
        for thread in threads:
            thread.join()
        assert len({live.predict(ROW)["prediction"], *seen.values()}) > 2
    assert mixed == []
