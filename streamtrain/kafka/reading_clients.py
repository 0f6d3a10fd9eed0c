"""The two clients of a program that looks at many topics now and then, one after the other."""

from __future__ import annotations

from collections.abc import Mapping

from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.renewing import Renewing
from streamtrain.kafka.settings import Purpose


class Reading:
    """An administration client and a consumer that joins no group, with the user's settings for each.

    One thread at a time. Until close().
    """

    def __init__(self, bootstrap: str, consumer: Mapping[str, object], admin: Mapping[str, object]) -> None:
        self.bootstrap = bootstrap
        self.settings = settings = {**consumer, "bootstrap.servers": bootstrap}  # the consumer's
        self.admin = Admin(bootstrap, admin)
        self.consumer = Renewing(lambda: KafkaConsumer.open(Purpose.READ, settings))  # no circle with the Admin in it

    def close(self) -> None:
        self.consumer.close()
