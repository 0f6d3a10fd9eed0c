"""A program that ends with one of our objects still open ends: at the interpreter's end no thread can be started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from publisher import Publisher
from small_model import SmallModel

from tests.e2e.harness import LiveJob

PROGRAMS = {
    "a follower": """
from streamtrain import follow_snapshots
snapshots = follow_snapshots({job!r}, bootstrap={bootstrap!r})
print(next(snapshots).version)
""",
    "a follower in a cycle": """
from streamtrain import follow_snapshots
held = [follow_snapshots({job!r}, bootstrap={bootstrap!r})]
held.append(held)
print(next(held[0]).version)
""",
    "a live model": """
from streamtrain import LiveModel
model = LiveModel({job!r}, bootstrap={bootstrap!r})
model.wait_ready(60)
print(model.version)
""",
    "a live model whose Kafka is away": """
import time
from streamtrain import LiveModel
model = LiveModel({job!r}, bootstrap="127.0.0.1:9")
until = time.monotonic() + 2
while time.monotonic() < until:
    assert not model.ready
print(1)
""",
    "predictions": """
from streamtrain import read_predictions
answers = read_predictions({job!r}, bootstrap={bootstrap!r}, stop=iter([False] * 5 + [True]).__next__)
held = [answers, read_predictions({job!r}, bootstrap={bootstrap!r})]
print(len(list(answers)))
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_ends(kafka: Any, tmp_path: Path, name: str) -> None:
    job = LiveJob(kafka, tmp_path, "ends")
    SmallModel.make().put(Publisher(kafka.bootstrap, job.name), 1)
    program = PROGRAMS[name].format(job=job.name, bootstrap=kafka.bootstrap)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0" if name == "predictions" else "1"] and not done.stderr
