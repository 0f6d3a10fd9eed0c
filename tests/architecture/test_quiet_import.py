"""Importing only defines: it is quick, starts nothing, opens nothing, and needs no optional package."""

from __future__ import annotations

import json
import os
import subprocess
import sys

IMPORT_S = 0.1
HEAVY = ("cupy", "torch", "pandas", "pyarrow", "sklearn", "faust", "jgo")
OURS = ("numpy", "pydantic", "confluent_kafka", "typer")  # what only parts of the product need

SCRIPT = """
import importlib, json, sys, threading, time
seen = []
watched = ("socket.__new__", "_thread.start_new_thread", "_thread.start_joinable_thread", "subprocess.Popen",
           "os.fork", "os.system", "os.posix_spawn")
sys.addaudithook(lambda event, arguments: seen.append(event) if event in watched else None)
start = time.process_time()
for name in json.loads(sys.argv[1]):
    importlib.import_module(name)
spent = time.process_time() - start
print(json.dumps({"seen": seen, "spent": spent, "threads": threading.active_count(), "modules": sorted(sys.modules)}))
"""


def imported(*names: str) -> dict:
    """Imports the modules in a fresh interpreter, and reports what that did."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # NumPy's own pool is not our thread
    command = [sys.executable, "-c", SCRIPT, json.dumps(names)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout)


def test_import_streamtrain_is_quick_and_light():
    # processor time, the least of three: other processes of this machine are not our doing
    done = [imported("streamtrain") for _ in range(3)]
    assert min(each["spent"] for each in done) < IMPORT_S
    assert [name for name in (*HEAVY, *OURS) if any(name in each["modules"] for each in done)] == []


def test_importing_everything_starts_nothing(package_trees):
    names = [name for name in package_trees if not name.startswith("streamtrain.integrations.")]
    done = imported(*names)
    assert done["seen"] == [] and done["threads"] == 1
    assert [name for name in HEAVY if name in done["modules"]] == []
