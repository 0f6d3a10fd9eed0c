"""A live model whose topic is deleted and made again keeps what it has."""

from __future__ import annotations

from typing import Any

from confluent_kafka.admin import AdminClient
from publisher import Publisher
from small_model import SmallModel
from waiting import wait_for

from streamtrain.clients.live_model import LiveModel

ROW = {"dep_delay": 3.5, "distance": 7, "hour": 2, "carrier": "UA", "origin": "JFK"}
MODEL = SmallModel.make()


def test_the_topic_is_deleted_and_made_again(kafka: Any) -> None:
    job = kafka.fresh_name("live")
    for version in range(1, 6):
        MODEL.put(Publisher(kafka.bootstrap, job), version)
    with LiveModel(job, bootstrap=kafka.bootstrap) as model:
        model.wait_ready(240)
        before = model.predict(ROW)
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        admin.delete_topics([f"{job}.snapshots"])[f"{job}.snapshots"].result()
        wait_for(lambda: f"{job}.snapshots" not in admin.list_topics(timeout=60).topics)
        assert (model.predict(ROW), model.version) == (before, 5)
        again = Publisher(kafka.bootstrap, job)
        MODEL.put(again, 3)  # another lineage's: a model's version never goes down
        MODEL.put(again, 7)
        wait_for(lambda: model.version == 7)
        assert model.predict(ROW) != before
