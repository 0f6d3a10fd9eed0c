"""Programs that use the package end, and well, whatever of ours is still open or running in them."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from publisher import Publisher
from small_model import SmallModel

from tests.e2e.harness import LiveJob

OPEN = {
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
print(len(list(answers)) + 1)
""",
}
LOOP = """
def loop():
    while True:
        call()
threading.Thread(target=loop, daemon=True).start()
time.sleep(0.3)
print(1)
"""
IN_NATIVE_CODE = {
    "the end of a heart": """
import threading, time
from streamtrain import _native
arena = _native.Arena.create(
    workers=1, averaging_frequency=1, slot_count=2, dead_letter_bytes=4096, state_layout=_native.StateLayout.make([]),
    slot_layout=_native.SlotLayout.make(9, 4, [("numbers", "f32", 2)]),
)
call = _native.Heartbeat(_native.CoordinatorEnd(arena)).stop
""",
    "a plan of another library": """
import threading, time
from streamtrain import _native
nothing = lambda *_: None
call = _native.ForeignPlan(8, 1, {"train": nothing}, nothing, nothing).begin_round
""",
}
# products of matrices in a thread whose stack is small, as servers and other languages' runtimes make them
SMALL_STACK = """
import threading
import numpy as np
from streamtrain import _native

def product():
    x, w, y = (np.ones(shape, np.float32) for shape in ((200, 700), (700, 600), (200, 600)))
    _native.call_kernel("dense_forward", "", [200, 700, 600, x, w, np.zeros(600, np.float32), 0, y])
    found.append(float(y.min()))

found = []
threading.stack_size(96 << 10)
thread = threading.Thread(target=product)
thread.start()
thread.join()
print(*found)
"""
# neither the arena's descriptor nor a pipe to a child is one of its standard streams, which it has closed
CLOSED_STREAMS = """
import os, sys
import streamtrain
from tests.fitting.example import TABLES, columns
for stream in range(3):
    os.close(stream)
rows = streamtrain.fit(TABLES, columns(500)).manifest.rows_seen
sys.exit(0 if rows == 500 else 9)
"""


def ended(program: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("name", OPEN)
def test_with_one_of_our_objects_open(kafka: Any, tmp_path: Path, name: str) -> None:
    """At the interpreter's end no thread can be started."""
    job = LiveJob(kafka, tmp_path, "ends")
    SmallModel.make().put(Publisher(kafka.bootstrap, job.name), 1)
    done = ended(OPEN[name].format(job=job.name, bootstrap=kafka.bootstrap))
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["1"], "")


@pytest.mark.parametrize("name", IN_NATIVE_CODE)
def test_with_a_thread_in_native_code(name: str) -> None:
    """Ends several programs at once: where in that code the end finds the thread is chance."""
    with ThreadPoolExecutor(8) as pool:
        for done in pool.map(ended, [IN_NATIVE_CODE[name] + LOOP] * 16):
            assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["1"], "")


def test_with_a_thread_of_a_small_stack_or_closed_standard_streams() -> None:
    ran = ended(SMALL_STACK)
    assert (ran.returncode, ran.stdout.split()) == (0, ["700.0"]), ran
    done = ended(CLOSED_STREAMS, Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
