"""What `streamtrain serve` tells of what its processes take, whichever of them is asked."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
from publisher import Publisher
from served_http import Served, job_file, serving
from small_model import SmallModel
from waiting import wait_for

MODEL = SmallModel.make()
TOLD = re.compile(r'^streamtrain_process_(\w+)\{process="([^"]+)"\} (\S+)$', re.MULTILINE)


def taken(server: Served) -> dict[str, dict[str, float]]:
    """By process, as whoever takes a new connection tells it."""
    found: dict[str, dict[str, float]] = {}
    for what, process, value in TOLD.findall(httpx.get(f"{server.event['url']}/metrics", timeout=60).text):
        found.setdefault(process, {})[what] = float(value)
    return found


def named(server: Served) -> dict[str, psutil.Process]:
    """The workers, by their names as `ps` shows them."""
    found = {}
    for child in psutil.Process(server.process.pid).children():
        with suppress(OSError):  # it has ended
            found[Path(f"/proc/{child.pid}/comm").read_text().strip()] = child
    return {comm.removeprefix("st-"): child for comm, child in found.items() if comm.startswith("st-")}


def spent_s(process: psutil.Process) -> float:
    """Until now; with a tick more, in which sums of decimals may differ."""
    return sum(process.cpu_times()[:2]) + 0.01


def test_of_one_process(kafka: Any, tmp_path: Path) -> None:
    name = kafka.fresh_name("served")
    MODEL.put(Publisher(kafka.bootstrap, name), 1)
    with serving(job_file(tmp_path, name, kafka.bootstrap)) as server:
        found = taken(server)
        assert found.keys() == {"serve"}
        assert found["serve"]["cpu_seconds_total"] > 0.1 and found["serve"]["pss_bytes"] > 1 << 20


def test_of_workers_and_who_takes_the_place_of_one(kafka: Any, tmp_path: Path) -> None:
    name = kafka.fresh_name("served")
    MODEL.put(Publisher(kafka.bootstrap, name), 1)
    with serving(job_file(tmp_path, name, kafka.bootstrap), options=("--workers", "2")) as server:
        workers = named(server)
        assert workers.keys() == {"serve-0", "serve-1"}
        found = taken(server)
        assert {"serve", *workers} <= found.keys()
        for process, worker in workers.items():
            assert 0.1 < found[process]["cpu_seconds_total"] <= spent_s(worker)
            assert found[process]["pss_bytes"] > 1 << 20
        workers["serve-0"].kill()
        wait_for(lambda: (now := named(server).get("serve-0")) is not None and now.pid != workers["serve-0"].pid)
        assert taken(server)["serve-0"]["cpu_seconds_total"] <= spent_s(named(server)["serve-0"])  # begun again
        assert server.stop() == 0
