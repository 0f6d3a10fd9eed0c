"""A producer whose end waits inside librdkafka holds nobody up but the thread that ends it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from failing_librdkafka import built

PROGRAM = """
import os, sys, threading
from streamtrain import _native
_native.kafka_load(sys.argv[1])
producers = [_native.KafkaProducer([("bootstrap.servers", "127.0.0.1:9")])]
threading.Thread(target=producers.clear, daemon=True).start()
while producers:
    pass
os._exit(7)
"""


def test_the_others_go_on(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(built(tmp_path))]
    done = subprocess.run(command, env={**os.environ, "FAULTS": "destroy=1"}, timeout=120)
    assert done.returncode == 7
