"""Processes that are spawned: whose end is theirs too, their signals, and signals that come meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest
from waiting import wait_for

from streamtrain.broker.process import Process
from streamtrain.interruption import uninterrupted

SPAWNS = """
import os, signal, sys
from pathlib import Path
from streamtrain.broker.process import Process
child = Process.spawn([sys.executable, "-c", "import signal; print('up', flush=True); signal.pause()"],
                      Path(sys.argv[1]), detached=sys.argv[2] == "detached")
print(child.pid, child.started, flush=True)
sys.stdin.read()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("kind", ["attached", "detached"])
def test_it_dies_with_its_parent_unless_detached(tmp_path, kind):
    command = [sys.executable, "-c", SPAWNS, str(tmp_path / "log"), kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdin is not None and parent.stdout is not None
        child = Process(*map(int, parent.stdout.readline().split()))
        wait_for(lambda: (tmp_path / "log").read_text() == "up\n")
        assert child.alive()
        parent.stdin.close()
    assert parent.returncode == -signal.SIGKILL
    if kind == "detached":
        assert child.alive()
        child.terminate()
    assert child.wait(60)


def test_it_has_the_signals_of_a_new_process_and_no_hook_of_a_fork_runs(tmp_path):
    forks: list[None] = []
    os.register_at_fork(before=lambda: forks.append(None))
    shows = "import re; print(re.search('SigIgn.*', open('/proc/self/status').read())[0])"
    seen = {}
    for detached in (True, False):
        log = tmp_path / f"{detached}.log"
        assert Process.spawn(["/bin/sh", "-c", f'exec {sys.executable} -c "{shows}"'], log, detached).wait(60)
        seen[detached] = log.read_text()
    assert seen[True] == seen[False] != "" and forks == []


@pytest.fixture
def interruptible():
    """Sets Python's own handler of SIGINT, which a shell's background job is started without."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_signals_wait_for_the_end_of_a_step():
    with pytest.raises(KeyboardInterrupt):
        steps = []
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            steps.append("whole")
    assert steps == ["whole"]
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_a_signal_without_a_handler_stays_so(handler):
    before = signal.signal(signal.SIGTERM, handler)
    try:
        with uninterrupted():
            if handler is signal.SIG_IGN:
                signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)


def test_another_thread_changes_no_handler():
    found: list[object] = []

    def look() -> None:
        with uninterrupted():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [signal.getsignal(signal.SIGINT)]
