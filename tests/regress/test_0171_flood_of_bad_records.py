"""A flood of bad records: what is unpublished stays bounded, each publication too, and a restart goes on from it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgpack
import psutil

from tests.e2e.harness import LiveJob, rows

BAD = 60_000
MOST_LETTERS = 24_000  # ingest opens no round above 20,000, and one round brings 4,000 at most
RING_BYTES = 16 << 20


def flooded(kafka: Any, folder: Path, **settings: Any) -> LiveJob:
    """Bad records alone, then a few good ones; a publication is due only because ingest waits for it."""
    job = LiveJob(kafka, folder, publish_interval="1h", max_dead_letter_share=1.0, **settings)
    one = next(rows(1))
    job.produce_values(msgpack.packb({**one, "x3": "n/a", "x4": at}) for at in range(BAD))
    job.produce(100)
    return job


def test_a_flood_goes_out_in_bounded_publications_whatever_the_interval(kafka, tmp_path: Path) -> None:
    job = flooded(kafka, tmp_path, round_interval="off")
    events = job.train("--until-end", failpoints="coordinator.after_commit=4")
    assert "restarting" in [event["event"] for event in events]
    dead = [sum(event["dead_letters"].values()) for event in events if event["event"] == "published"]
    assert len(dead) >= 3 and max(dead) <= MOST_LETTERS, dead
    waiting = [event["unpublished_bytes"] for event in events if event["event"] == "progress"]
    assert max(waiting) <= RING_BYTES, waiting
    assert job.verified()["rows"] == {"trained": 100, "dead_lettered": BAD, "filtered": 0}
    job.replayed()


def resident_peaks_mb(processes: Sequence[psutil.Process]) -> list[int]:
    """The most that each has held; of one that has said its last and ended there is none."""
    found = []
    for process in processes:
        with suppress(FileNotFoundError, ProcessLookupError):
            lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
            found += [int(line.split()[1]) // 1000 for line in lines if line.startswith("VmHWM")]
    return found


def test_the_coordinators_memory_stays_as_small(kafka, tmp_path: Path) -> None:
    job = flooded(kafka, tmp_path)
    job.produce_values(2 * BAD * [b"\xc1"])
    running = job.start("train", "--until-end")
    assert running.process.stdout is not None
    most_mb: list[int] = []
    for line in running.process.stdout:
        if json.loads(line)["event"] == "progress":
            most_mb += resident_peaks_mb(running.children()[:1])   # the coordinator's
    assert running.finish() == 0
    assert most_mb[-1] < 140, (most_mb[-1], len(most_mb))


def test_long_letters_are_bounded_by_their_bytes(kafka, tmp_path: Path) -> None:
    """Longer ones than a letter carries, and records whose bytes would fill the ring many times over."""
    job = LiveJob(kafka, tmp_path, partitions=1, publish_interval="1h", round_interval="off", max_dead_letter_share=1.0)
    one = next(rows(1))
    bad = {**one, "x3": "n/a"}
    many = msgpack.packb([bad if at % 65 == 0 else {**one, "padding": "." * 60} for at in range(3000)])  # 3,000 rows
    long = msgpack.packb({**bad, "padding": "." * 400_000})
    job.produce_values([many if at % 4 == 0 else long for at in range(80)])
    events = job.train("--until-end")
    waiting = [event["unpublished_bytes"] for event in events if event["event"] == "progress"]
    assert max(waiting) <= RING_BYTES + 2**20, waiting  # and the round log
    dead = -(-3000 // 65) * 20 + 60
    assert job.verified()["rows"] == {"trained": 20 * 3000 - dead + 60, "dead_lettered": dead, "filtered": 0}
    published = len([event for event in events if event["event"] == "published"])
    assert 3 <= published <= 12  # 31 MB in all, a record's bytes once a round
