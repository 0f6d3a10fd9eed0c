"""`streamtrain serve` in several processes: they share a port, and each tells the figures of all."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
from publisher import Publisher
from served_http import ROW, Served, job_file, serving
from small_model import SmallModel
from waiting import wait_for

MODEL = SmallModel.make()
NAMES = {"serve-0", "serve-1"}


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


def of_predictions(server: Served, name: str) -> list[dict[str, Any]]:
    return [line for line in server.lines() if line.get("path") == f"/predict/{name}"]


def test_of_workers_and_who_takes_the_place_of_one(kafka: Any, tmp_path: Path) -> None:
    name = kafka.fresh_name("served")
    MODEL.put(Publisher(kafka.bootstrap, name), 1)
    of = f'{{job="{name}"}}'
    with serving(job_file(tmp_path, name, kafka.bootstrap), options=("--workers", "2")) as server:
        wait_for(lambda: server.figure(f"streamtrain_ready{of}") == 1)
        workers = named(server)
        assert workers.keys() == NAMES
        found = server.taken()
        assert {"serve", *workers} <= found.keys()
        for process, worker in workers.items():
            assert 0.1 < found[process]["cpu_seconds_total"] <= spent_s(worker)
            assert found[process]["pss_bytes"] > 1 << 20

        processes: set[str] = set()
        asked = 0
        while len(processes) < 2:  # a connection goes to whichever the kernel gives it to
            with httpx.Client(base_url=server.event["url"], timeout=60) as client:
                assert client.post(f"/predict/{name}", json=[ROW, {}]).status_code == 200
            asked += 1
            wait_for(lambda asked=asked: len(of_predictions(server, name)) == asked)
            processes = {line["process"] for line in of_predictions(server, name)}
        assert processes == NAMES
        wait_for(lambda: server.figure(f"streamtrain_requests_total{of}") == asked)
        counted = [server.figure(f"streamtrain_{each}{of}") for each in ("rows_total", "row_errors_total")]
        assert counted == [asked, asked] and server.figure(f"streamtrain_request_seconds_count{of}") == asked

        workers["serve-0"].kill()
        wait_for(lambda: (now := named(server).get("serve-0")) is not None and now.pid != workers["serve-0"].pid)
        wait_for(lambda: server.figure("streamtrain_serving_processes") == 2)
        wait_for(lambda: server.figure(f"streamtrain_ready{of}") == 1)
        assert named(server).keys() == NAMES
        assert server.taken()["serve-0"]["cpu_seconds_total"] <= spent_s(named(server)["serve-0"])  # begun again
        assert server.figure(f"streamtrain_requests_total{of}") == asked  # what it had counted is not lost
        assert server.stop() == 0
