"""Metrics and readiness over HTTP, fed with a trainer's events and a predictor's counters."""

from __future__ import annotations

import http.client
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_for

from streamtrain import __version__
from streamtrain.errors import KafkaUnreachable, UserMistake
from streamtrain.telemetry import PredictorMeters, Telemetry, TrainerMeters, devices, processes, server
from streamtrain.telemetry.trainer import plain_reason

STARTED = {"event": "started", "resumed": True, "version": 3, "rows": 10, "run": 2}
PUBLISHED = {
    "event": "published",
    "version": 4,
    "digest": "00",
    "round": 9,
    "rows": 5_000,
    "bytes": 100,
    "transaction_s": 0.03,
    "event_age_s": 0.3,
    "metrics": {
        "held_out": {"log_loss": 0.5, "rows": 7},
        "total": {
            "log_loss": 0.25,
            "constant_log_loss": 0.5,
            "rows": 5_000,
            "weight": 4.5,
            "confusion_matrix": [[1, 2], [3, 4]],
        },
        "window": None,
        "updates": 40,
        "rate_left": 0.5,
        "clipped": {"x1": 2},
    },
    "dead_letters": {'expected number, got "bad"': 2, 'expected number, got "x"': 1},
    "positions": [[100, 0], [50, 3]],
}


def progress(rows: int, **more: Any) -> dict[str, Any]:
    event = {"event": "progress", "unreachable": False, "unpublished_bytes": 7, "finished_round": rows // 100}
    event |= {"rows": rows, "records": rows // 2, "bytes": rows * 8, "slots_filled": 12, "slots_released": 4}
    return {**event, **more}


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def values(telemetry: Telemetry) -> dict[str, float]:
    code, text = get(telemetry.port, "/metrics")
    assert code == 200
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    found = {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}
    assert all('job="flights"' in name for name in found)
    return {name.replace('job="flights",', "").replace('{job="flights"}', ""): value for name, value in found.items()}


def test_metrics_follow_the_events() -> None:
    with Telemetry(0, TrainerMeters("flights", 24)) as telemetry:
        for event in (STARTED, progress(1_000), PUBLISHED, progress(3_000)):
            telemetry(event)
        found = values(telemetry)
    expected = {
        "streamtrain_rows_total": 3_000,
        "streamtrain_records_total": 1_500,
        "streamtrain_ring_slots_used": 8,
        "streamtrain_ring_slots": 24,
        "streamtrain_snapshot_version": 4,
        "streamtrain_snapshot_rows": 5_000,
        "streamtrain_transaction_seconds_count": 1,
        "streamtrain_event_to_snapshot_seconds_sum": 0.3,
        "streamtrain_unpublished_bytes": 7,
        'streamtrain_dead_letters_total{reason="expected number"}': 3,
        'streamtrain_quality{name="log_loss",span="total"}': 0.25,
        'streamtrain_quality{name="constant_log_loss",span="total"}': 0.5,
        'streamtrain_quality{name="log_loss",span="held_out"}': 0.5,
        "streamtrain_runs_total": 1,
        "streamtrain_ready": 1,
    }
    assert {name: found[name] for name in expected} == expected
    assert 0 <= found["streamtrain_snapshot_age_seconds"] < 600
    assert [name for name in found if "quality" in name] == [name for name in expected if "quality" in name]
    assert found[f'streamtrain_info{{run="2",version="{__version__}"}}'] == 1


def test_readiness() -> None:
    """A trainer that another run has replaced is not ready either."""
    expected = [
        (None, 503),
        (STARTED, 200),
        (progress(1, unreachable=True), 503),
        (progress(2), 200),
        ({"event": "restarting", "reason": "x"}, 503),
        (STARTED, 200),
        (progress(5, waiting_for_schema=True), 503),
        (progress(5), 200),
        (PUBLISHED, 200),
        ({"event": "replaced"}, 503),
    ]
    with Telemetry(0, TrainerMeters("flights", 24)) as telemetry:
        states = []
        for event, _ in expected:
            if event is not None:
                telemetry(event)
            states.append((event, get(telemetry.port, "/ready")[0]))
        assert states == expected
        assert get(telemetry.port, "/else")[0] == 404


def test_a_new_run_counts_on_and_reasons_do_not_grow_with_the_data() -> None:
    assert plain_reason('expected number, got "bad"') == "expected number"
    meters = TrainerMeters("flights", 24)
    for rows in (100, 300, 50, 60):  # of two runs
        meters(progress(rows))
    assert meters.registry.get_sample_value("streamtrain_rows_total", {"job": "flights"}) == 360
    for number in range(200):
        meters({**PUBLISHED, "dead_letters": {f"reason {number}": 1}})
    families = {family.name: family.samples for family in meters.registry.collect()}
    samples = [sample for sample in families["streamtrain_dead_letters"] if sample.name.endswith("_total")]
    assert len(samples) == 51 and sum(sample.value for sample in samples) == 200


def test_lag_is_asked_of_kafka_whose_absence_ends_readiness(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "ASK_EVERY_S", 0.01)
    meters, ends = TrainerMeters("flights", 24), [[130, 60, 5]]

    def lag() -> dict[int, int]:
        if not ends:
            raise KafkaUnreachable("away")
        return meters.lag(ends[0])

    with Telemetry(0, meters, lag) as telemetry:
        for event in (STARTED, PUBLISHED):
            telemetry(event)
        by_partition = {f'streamtrain_lag_offsets{{partition="{at}"}}': lag for at, lag in enumerate((30, 10, 5))}
        wait_for(lambda: by_partition.items() <= values(telemetry).items())
        assert get(telemetry.port, "/ready")[0] == 200
        gone = ends.pop()
        wait_for(lambda: get(telemetry.port, "/ready")[0] == 503)
        assert by_partition.items() <= values(telemetry).items()
        ends.append(gone)
        wait_for(lambda: values(telemetry)["streamtrain_ready"] == 1)


def answered(**more: int) -> dict[str, Any]:
    names = ("requests", "rows", "errors", "row_errors", "batches", "rewinds", "version", "snapshot_made_ms",
             "waiting")  # fmt: skip
    return {"event": "answered", **dict.fromkeys(names, 0), "newest_request_ms": -1, **more}


def test_a_predictor_is_ready_with_its_first_snapshot() -> None:
    with Telemetry(0, PredictorMeters("flights")) as telemetry:
        telemetry(answered())
        assert get(telemetry.port, "/ready")[0] == 503
        made_ms = int(time.time() * 1_000) - 7_000
        counters = {"requests": 20, "rows": 50, "errors": 2, "row_errors": 5, "batches": 3, "rewinds": 1}
        telemetry(answered(**counters, version=4, snapshot_made_ms=made_ms, waiting=2))
        assert get(telemetry.port, "/ready")[0] == 503, "a schema is waited for"
        telemetry(answered(**counters, version=4, snapshot_made_ms=made_ms))
        assert get(telemetry.port, "/ready")[0] == 200
        found = values(telemetry)
    expected = {
        "streamtrain_requests_total": 20,
        "streamtrain_rows_total": 50,
        "streamtrain_request_errors_total": 2,
        "streamtrain_row_errors_total": 5,
        "streamtrain_batches_total": 3,
        "streamtrain_rewinds_total": 1,
        "streamtrain_snapshot_version": 4,
        "streamtrain_ready": 1,
    }
    assert {name: found[name] for name in expected} == expected
    assert 7 <= found["streamtrain_snapshot_age_seconds"] < 600


def test_an_address_that_cannot_be_taken_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UserMistake, match=f"--metrics-port {port} of --metrics-host 127.0.0.1: Address already in"):
            Telemetry(port, TrainerMeters("flights", 24))
    with pytest.raises(UserMistake, match=r"--metrics-host 192\.0\.2\.1: "):
        Telemetry(0, PredictorMeters("flights"), host="192.0.2.1")


def test_only_this_machine_is_answered_unless_asked_for() -> None:
    for settings, end in (({}, pytest.raises(OSError)), ({"host": "0.0.0.0"}, nullcontext())):
        with Telemetry(0, PredictorMeters("flights"), **settings) as telemetry, end:
            socket.create_connection(("127.0.0.2", telemetry.port), timeout=60).close()


def test_head_is_answered_without_a_body() -> None:
    with Telemetry(0, PredictorMeters("flights")) as telemetry:
        for path, code in (("/metrics", 200), ("/ready", 503)):
            with closing(http.client.HTTPConnection("127.0.0.1", telemetry.port, timeout=60)) as connection:
                connection.request("HEAD", path)
                answer = connection.getresponse()
                assert answer.status == code and int(answer.headers["Content-Length"]) > 0 and answer.read() == b""


BUSY = """
import sys
from streamtrain.run.process import show_as
show_as("worker-7")
held = bytearray(b"x" * (64 << 20))
total = sum(at * at for at in range(4_000_000))
print("ready", flush=True)
sys.stdin.read()
"""


def test_processes_are_told_by_name() -> None:
    """A child of a child too, for workers are that."""
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY!r}])"
    with subprocess.Popen([sys.executable, "-c", nested], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        with Telemetry(0, TrainerMeters("flights", 24)) as telemetry:
            found = values(telemetry)
        child.communicate()
    assert found['streamtrain_process_pss_bytes{process="worker-7"}'] > 64 << 20
    assert found['streamtrain_process_cpu_seconds_total{process="worker-7"}'] > 0
    assert found['streamtrain_process_pss_bytes{process="supervisor"}'] > 1 << 20
    with Telemetry(0, TrainerMeters("flights", 24)) as telemetry:
        assert not [name for name in values(telemetry) if "worker-7" in name]


def test_a_process_that_ends_meanwhile_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "family", lambda process: [process, (1 << 22) + 1])  # above any kernel's pid_max
    with Telemetry(0, PredictorMeters("flights")) as telemetry:
        told = [name for name in values(telemetry) if "process_pss" in name]
    assert told == ['streamtrain_process_pss_bytes{process="predictor"}']


def test_children_are_of_each_thread_that_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A thread that ends while it is looked at hides no child of the others; a process that ends, none of the rest."""
    listed = {(10, at): f"{10 + at} " for at in range(1, 9)} | {(11, 11): "21 22 ", (12, 12): ""}
    for (process, thread), children in listed.items():
        task = tmp_path / str(process) / "task"
        (task / str(thread)).mkdir(parents=True)
        (task / str(thread) / "children").write_text(children)
        (task / str(100 + thread)).mkdir()  # has ended
    monkeypatch.setattr(processes, "_PROC", tmp_path)
    assert sorted(processes.family(10)) == [*range(10, 19), 21, 22]


NVML = """
#include <string.h>
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 3; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned at, void **handle) { *handle = (void *)(unsigned long)(at + 1); return 0; }
int nvmlDeviceGetName(void *handle, char *name, unsigned length) { strncpy(name, "Some GPU", length); return 0; }
int nvmlDeviceGetMemoryInfo(void *handle, unsigned long long *memory) {
    memory[0] = 80; memory[1] = 50; memory[2] = 30; return (unsigned long)handle == 2 ? 15 : 0;  /* one is lost */
}
int nvmlDeviceGetUtilizationRates(void *handle, unsigned *percent) { percent[0] = 25; percent[1] = 7; return 0; }
"""


def test_gpus_are_told_where_their_driver_is(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here")
    source, library = tmp_path / "nvml.c", tmp_path / "libnvidia-ml.so.1"
    source.write_text(NVML)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    assert devices.devices(str(library)) == [
        devices.Device("0 Some GPU", 0.25, 30, 80), devices.Device("2 Some GPU", 0.25, 30, 80)
    ]  # fmt: skip
    assert devices.devices(str(tmp_path / "none.so")) == []
    told = {
        sample.name: sample.value for family in devices.Devices("flights", str(library)).collect()
        for sample in family.samples if sample.labels == {"job": "flights", "device": "2 Some GPU"}
    }  # fmt: skip
    assert told == {
        "streamtrain_gpu_utilization": 0.25, "streamtrain_gpu_memory_used_bytes": 30, "streamtrain_gpu_memory_bytes": 80
    }  # fmt: skip
