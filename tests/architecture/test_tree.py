"""The top level holds what it may, no file knows the machine it was written on, and golden files stand."""

from __future__ import annotations

import re

from golden_messages import golden_file

from streamtrain.topics.topic import all_topics
from tests.architecture.sources import ROOT, text

TOP_LEVEL = {
    ".ci", ".gitignore", "CHANGELOG.md", "LICENSE", "README.md", "compute", "deploy", "docker-compose.yml", "docs",
    "examples", "mkdocs.yml", "native", "pyproject.toml", "streamtrain", "tests", "topics",
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
