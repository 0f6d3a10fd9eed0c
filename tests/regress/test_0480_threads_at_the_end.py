"""A thread that is in native code when the interpreter ends neither aborts the program nor holds it up."""

from __future__ import annotations

import subprocess
import sys

import pytest

BEGIN = "import threading, time\nfrom streamtrain import _native\n"
END = """
def loop():
    while True:
        call()
threading.Thread(target=loop, daemon=True).start()
time.sleep(0.3)
"""
CALLS = {
    "the end of a heart": """
arena = _native.Arena.create(
    workers=1, averaging_frequency=1, slot_count=2, dead_letter_bytes=4096, state_layout=_native.StateLayout.make([]),
    slot_layout=_native.SlotLayout.make(9, 4, [("numbers", "f32", 2)]),
)
call = _native.Heartbeat(_native.CoordinatorEnd(arena)).stop
""",
    "a plan of another library": """
nothing = lambda *_: None
call = _native.ForeignPlan(8, 1, {"train": nothing}, nothing, nothing).begin_round
""",
}


@pytest.mark.parametrize("call", CALLS)
def test_it_ends(call: str) -> None:
    done = subprocess.run([sys.executable, "-c", BEGIN + CALLS[call] + END], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
