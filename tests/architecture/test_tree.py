"""Tests of the tree: what lies where, and native folders that include one another in one order.

Also: imports start nothing.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest
from golden_messages import golden_file

from streamtrain import _native
from streamtrain.topics.topic import all_topics
from tests.architecture.sources import ROOT, text

# a folder may include those before it
ORDER = [
    "base", "kernels", "state", "ring", "plan", "kafka", "source", "decode", "train", "predict", "bindings"
]  # fmt: skip
INCLUDE = re.compile(r'^#include "(\w+)/', re.MULTILINE)
WORDS = re.compile(r"\.(?:store|fetch_add|compare_exchange_\w+)\(")
CONTROL = re.compile(r"\bcontrol\(\)")
FILLED_BY_HAND = re.compile(r"\bmake_decoder\(|\bclear_behind\(|\bRowSink\s+\w+\s*[{=;]|\bRowSink\s*\{")


def sources(tracked: list[str]) -> dict[str, str]:
    return {name: text(name) for name in tracked if name.startswith("native/") and name.endswith((".h", ".cpp"))}


def test_includes_go_down(tracked: list[str]) -> None:
    wrong = []
    for name, code in sources(tracked).items():
        folder = name.split("/")[1]
        allowed = ORDER[: ORDER.index(folder) + 1] if folder in ORDER else ORDER  # module.cpp stands above all
        wrong += [f"{name} includes {theirs}" for theirs in INCLUDE.findall(code) if theirs not in allowed]
    assert wrong == []


def test_every_folder_has_its_place(tracked: list[str]) -> None:
    assert {name.split("/")[1] for name in tracked if re.match(r"native/\w+/", name)} == set(ORDER)


@pytest.mark.parametrize(
    ("pattern", "is_its_place"),
    [
        (WORDS, lambda name: not name.startswith("native/bindings/")),
        (CONTROL, lambda name: name.startswith("native/ring/")),  # who may write which word is in ring/words.h alone
        (FILLED_BY_HAND, lambda name: name.startswith("native/decode/")),  # the batch filler turns rows into slots
    ],
    ids=["a shared word is written", "the ring's words are reached", "rows are decoded"],
)
def test_a_thing_is_done_in_its_place(tracked: list[str], pattern: re.Pattern[str], is_its_place: Any) -> None:
    doing = [name for name, code in sources(tracked).items() if pattern.search(code)]
    assert doing and [name for name in doing if not is_its_place(name)] == []


def test_what_an_error_offers_tells_what_it_loses(tracked: list[str]) -> None:
    """A new lineage is offered in one way, and where an error says to delete something, it says what is lost."""
    python = [name for name in tracked if name.startswith(("streamtrain/", "topics/")) and name.endswith(".py")]
    found = [(name, line.strip()) for name in python for line in text(name).splitlines()]
    fresh = [name for name, line in found if re.search(r"(with|over with|and) --fresh|^\"--fresh\"", line)]
    deleted = [name for name, line in found if re.search(r"[\";,] ?(and |or )?delete (it|the topic)\b", line)]
    assert fresh == ["streamtrain/errors.py"]
    assert [name for name in deleted if "loses" not in text(name)] == []


def test_settings_of_librdkafka_are_in_the_native_table_alone(tracked: list[str]) -> None:
    names = {name for name, value, *_ in _native.kafka_settings() if value is not None}
    setting = re.compile("|".join(f'"{re.escape(name)}"' for name in sorted(names)))
    python = [name for name in tracked if name.startswith("streamtrain/") and name.endswith(".py")]
    assert [(name, found) for name in python for found in setting.findall(text(name))] == []


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


TOP_LEVEL = {
    ".ci", ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "compute", "deploy",
    "docker-compose.yml", "docs", "examples", "mkdocs.yml", "native", "pyproject.toml", "streamtrain", "tests",
    "topics",
}  # fmt: skip
LARGEST_BYTES = 300_000

# written in pieces, so that this file does not find itself
MACHINE = re.compile(
    r"(?:^|[^\w.])/(?:wo" + "rk|fa" + "rm|ro" + r"ot|home/\w+|opt/wh" + r"eels)/"
    r"|index-" + r"url|/sim" + r"ple/|ma" + r"ven2|repo1?\.ma" + "ven"
)


def test_the_top_level(tracked):
    entries = {name.split("/")[0] for name in tracked}
    assert entries - TOP_LEVEL == set()


def test_compute_and_topics_are_links_into_the_package():
    for name in ("compute", "topics"):
        link = ROOT / "streamtrain" / name
        assert link.is_symlink() and str(link.readlink()) == f"../{name}"


def test_no_file_knows_this_machine(tracked):
    found = []
    for name in tracked:
        if MACHINE.search(text(name)) or str(ROOT) in text(name):
            lines = enumerate(text(name).splitlines(), 1)
            found += [f"{name}:{number} {line}" for number, line in lines if MACHINE.search(line) or str(ROOT) in line]
    assert found == []


def test_no_large_files(tracked):
    sizes = {name: (ROOT / name).stat().st_size for name in tracked}
    assert {name: size for name, size in sizes.items() if size > LARGEST_BYTES} == {}


def test_every_topic_of_ours_has_golden_messages():
    ours = {key for key, topic in all_topics().items() if topic.owned}
    found = {path.name.split(".")[0] for path in (ROOT / "tests" / "golden").glob("*.messages.jsonl")}
    assert found == ours
    assert [key for key in ours if not golden_file(key).exists()] == []


def test_readme_states_the_set_up_that_continuous_integration_runs():
    readme = (ROOT / "README.md").read_text().splitlines()
    assert "python -m venv .venv && .venv/bin/pip install '.[demo]' && .venv/bin/streamtrain demo" in readme
    assert "python -m venv .venv && .venv/bin/pip install -e '.[test]' && .venv/bin/pytest" in readme
