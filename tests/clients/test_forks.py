"""A forked child does not free what only its parent's threads could: librdkafka would abort it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

CHILD = """
import gc, os, sys
from confluent_kafka import Consumer, TopicPartition
from streamtrain.clients.forks import after_fork, keep_for_ever

class Client:
    def __init__(self):
        self.consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "never joined"})
        self.consumer.assign([TopicPartition("no-such-topic", 0, 0)])
        self.consumer.poll(1)
        after_fork(self, lambda client: keep_for_ever(client.consumer))

client = Client()
child = os.fork()
if child == 0:
    del client
    gc.collect()
    sys.exit(7)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
client.consumer.close()
sys.exit(code)
"""


def test_a_child_keeps_its_parents_consumer_for_ever(kafka: Any) -> None:
    ended = subprocess.run([sys.executable, "-c", CHILD, kafka.bootstrap], capture_output=True, text=True)
    assert ended.returncode == 7, ended.stderr
