"""A job file the tests change in one place at a time."""

from __future__ import annotations

from string import Template

import pytest

JOB = """\
name = "flights"

[kafka]
bootstrap.servers = "localhost:9092"

[topics]
records = { name = "prod.flights", partitions = 4 }

[records]
format = "json"

[columns]
dep_delay = { kind = "number", standardize = true, missing = 0 }
carrier = { kind = "category", buckets = 64, embed = 8 }
late = { role = "label", missing = "skip" }

[model]
layers = [ { dense = 64, activation = "relu" } ]
loss = "binary_cross_entropy"

[optimizer]
name = "adam"
learning_rate = 3e-3

[train]
batch_rows = 256
workers = 2
averaging_frequency = 4
round_interval = "250ms"
prefetch_buffer = 24

[publish]
interval = "1s"
archive = { every = "10m", keep = 24 }
"""


@pytest.fixture
def job_text() -> str:
    return JOB


def replacements(table: str, **names: str) -> list[tuple[str, str, str]]:
    """Reads `old -> new` lines, each with its message in the indented lines below it, in which $NAME is of `names`."""
    found: list[tuple[str, str, str]] = []
    for line in Template(table).substitute(names).splitlines()[1:]:
        if line.startswith(" "):
            old, new, message = found.pop()
            found.append((old, new, f"{message} {line.strip()}".lstrip()))
        else:
            old, _, new = line.partition(" ->")
            found.append((old, new.strip(), ""))
    return found
