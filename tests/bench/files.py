"""Rows to records without a broker: files, as `produce` and `fit` read them and `vectorize` does, RecordWriter,
transforms, pictures and sounds."""

from __future__ import annotations

import csv
import functools
import io
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import orjson
import pyarrow
import pyarrow.csv
from confluent_kafka import Producer
from slots import RowSlot, set_rows

from streamtrain import Job, RecordWriter
from streamtrain.columns import media, sounds
from streamtrain.columns.record_encoding import Records
from streamtrain.columns.schema import Schema
from streamtrain.columns.sounds import SoundForm
from streamtrain.demo.flights import FEATURES, load_flights
from streamtrain.files.blocks import Size
from streamtrain.files.column_selection import ColumnSelection
from streamtrain.files.file_records import FileRecords
from streamtrain.files.reading import read_blocks
from tests.bench.bed import NAMES, job_text, table
from tests.bench.decode import decoder, each_of
from tests.bench.harness import Line, Run, Sides, bench, best_times, in_turns, rates
from tests.bench.steps import planned
from tests.oracles.records import encode_records, encode_rows

PACK = 256
QUEUE = {"queue.buffering.max.messages": "5000000", "queue.buffering.max.kbytes": "2000000", "log_level": "0"}
NOWHERE = "127.0.0.1:9"


def file_of(columns: int, rows: int, folder: Path) -> tuple[Job, str]:
    """A job of so many numbers, and a CSV file of its rows."""
    names = [f"x{i}" for i in range(columns)]
    settings: dict[str, Any] = {**{name: {"missing": 0} for name in names}, "y": {"role": "label"}}
    job = Job.from_tables({"columns": settings, "model": {"loss": "mean_squared_error"}})
    cells = np.random.default_rng(1).normal(size=(rows, columns + 1)).round(5)
    path = folder / f"{columns}.csv"
    np.savetxt(path, cells, "%.5f", ",", header=",".join([*names, "y"]), comments="")
    return job, str(path)


def to_records(job: Job, path: str) -> int:
    records = Records(job.schema, "packed", "bench", PACK, 1 << 20)
    blocks = read_blocks([path], ColumnSelection(job.schema), Size(4_096, PACK))
    return sum(record.rows for block in blocks for some in records.blocks(block, None, False) for record in some)


def by_python(path: str) -> int:
    rows = 0
    with open(path, newline="") as file:
        reader = csv.DictReader(file)
        while part := list(islice(reader, PACK)):
            orjson.dumps([{name: float(cell) for name, cell in row.items()} for row in part])
            rows += len(part)
    return rows


def to_columns(job: Job, path: str) -> int:
    plan = job.plan()
    return sum(batch.count for batch in plan.batches(FileRecords(job, [path], format=plan.bare), bare=True, copy=False))


def by_pyarrow(path: str) -> int:
    read = pyarrow.csv.read_csv(path, pyarrow.csv.ReadOptions(use_threads=False))
    return len(np.column_stack([column.to_numpy().astype(np.float32) for column in read.columns]))


@bench(
    "files",
    {
        (1_000,): [Line("1,000 columns of CSV to packed records", "records", "csv + float + orjson", 3)],
        (28,): [
            Line("28 columns of CSV to packed records", "records", "csv + float + orjson", 3),
            Line("28 columns of CSV to columns of the model", "columns", "pyarrow, one thread"),
        ],
    },
    rates(cpu=time.process_time), "rows/s", {"rows": 300}, seconds=18.0, rows=4_096,
)  # fmt: skip
def files(run: Run, columns: int) -> Sides:
    """Files of rows to records and to columns, against Python's csv with orjson, and pyarrow, which hashes no words."""
    job, path = file_of(columns, run.rows, run.folder)
    return {
        "records": lambda: to_records(job, path), "csv + float + orjson": lambda: by_python(path),
        "columns": lambda: to_columns(job, path), "pyarrow, one thread": lambda: by_pyarrow(path),
    }  # fmt: skip


def job(form: str) -> Job:
    return Job.parse(job_text(NOWHERE, format=form), sets=[f"kafka.{name}={text}" for name, text in QUEUE.items()])


def cpu_rate(call: Callable[[], int], run: Run) -> float:
    """Rows a second of the thread's processor time; once is not counted."""
    call()
    done, begun, seconds = 0, time.thread_time(), run.seconds / run.turns / 8
    while (spent := time.thread_time() - begun) < seconds or not done:
        done += call()
    return done / spent


def written(form: str, write: Callable[[RecordWriter], object], run: Run) -> float:
    writer = RecordWriter(job(form))
    writer._last_words.detach()  # nothing is to be delivered
    try:
        return cpu_rate(lambda: (write(writer), PACK)[1], run)
    finally:
        writer._outbox._producer.purge()


def produced(write: Callable[[Producer], object], run: Run) -> float:
    producer = Producer({**QUEUE, "bootstrap.servers": NOWHERE, "linger.ms": "5", "enable.idempotence": True})
    try:
        return cpu_rate(lambda: (write(producer), PACK)[1], run)
    finally:
        producer.purge()


def encoded(dtype: str, run: Run) -> float:
    """Columns → packed records of 256 rows, not handed to librdkafka."""
    cells = table(65_536).astype(dtype)
    columns = {name: np.ascontiguousarray(cells[:, at]) for at, name in enumerate(NAMES)}
    records = Records(job("packed").schema, "packed", "bench.records", PACK, 900_000)
    return cpu_rate(lambda: sum(record.rows for block in records.blocks(columns, None, False) for record in block), run)


@bench(
    "writer",
    [
        Line("256 dicts, packed", "packed", "orjson.dumps + produce of each", 2),
        Line("256 dicts, packed", "packed", "orjson.dumps + produce of the list", 2),
        Line("one dict, msgpack", "msgpack", "orjson.dumps + produce of each", 1),
        Line("one dict, json", "json", "orjson.dumps + produce of each"),
        Line("float32 arrays encoded to packed / 10 M rows/s", "float32", 10e6, 1),
        Line("float64 arrays encoded to packed / 10 M rows/s", "float64", 10e6, 1),
    ],
    in_turns, "rows/s", seconds=20.0, turns=5,
)  # fmt: skip
def writer(run: Run) -> Sides:
    """RecordWriter against orjson.dumps and produce() of the same rows, without a broker, by the thread's processor
    time."""
    rows: list[dict[str, Any]] = [dict(zip(NAMES, row, strict=True)) for row in table(PACK).round(4).tolist()]
    topic = "bench.records"
    return {
        "packed": lambda: written("packed", lambda writer: writer.write(rows), run),
        "msgpack": lambda: written("msgpack", lambda writer: [writer.write(row) for row in rows], run),
        "json": lambda: written("json", lambda writer: [writer.write(row) for row in rows], run),
        "orjson.dumps + produce of each": lambda: produced(
            lambda producer: [producer.produce(topic, orjson.dumps(row)) for row in rows], run
        ),
        "orjson.dumps + produce of the list": lambda: produced(
            lambda producer: producer.produce(topic, orjson.dumps(rows)), run
        ),
        "float32": lambda: encoded("f4", run),
        "float64": lambda: encoded("f8", run),
    }


ROWS, PACKED_ROWS = 1024, 256
COLUMNS: dict[str, Any] = {
    "dep_delay": {"standardize": True, "missing": 0},
    "{distance,hour,month,day,weekday}": {"standardize": True},
    "carrier": {"kind": "category", "buckets": 64, "embed": 8},
    "{origin,dest}": {"kind": "category", "buckets": 256, "embed": 8},
    "sched": {"role": "event_time"},
    "late": {"role": "label", "missing": "skip"},
}
TRANSFORMS: dict[str, Any] = {
    "log_distance": {"log1p": "distance"},
    "early": {"clip": "dep_delay", "high": 0},
    "delay": {"clip": "dep_delay", "low": -30, "high": 180},
    "hours_late": {"scale": "dep_delay", "by": 1 / 60},
    "root_distance": {"power": "distance", "exponent": 0.5},
    "square": {"power": "hour", "exponent": 2},
    "pace": {"expr": "dep_delay / (distance + 100)"},
    "night": {"expr": "hour < 6 or hour >= 22"},
    "was_cancelled": {"is_missing": "dep_delay"},
    "delay_bin": {"bins": "dep_delay", "edges": [-10, 0, 5, 15, 30, 60, 120], "embed": 2},
    "far": {"bins": "distance", "edges": [500, 1000, 2000], "kind": "number"},
    "weekend": {"expr": "weekday >= 5"},
    "route": {"cross": ["origin", "dest"], "buckets": 65536, "embed": 4},
    "route_carrier": {"cross": ["origin", "dest", "carrier"], "buckets": 65536, "embed": 4},
    "carrier_again": {"hash": "carrier", "buckets": 128, "embed": 2},
    "small": {"lower": "carrier", "buckets": 64, "embed": 2},
    "from_jfk": {"expr": "origin == 'JFK'"},
    "origin_is": {"one_hot": "origin", "values": ["JFK", "LGA", "EWR"]},
    "clock": {"time": "sched", "parts": ["hour", "weekday"], "cyclic": True, "zone": "America/New_York"},
    "month_again": {"rename": "month"},
}
STATEFUL: dict[str, Any] = {
    "carrier_rate": {"target_mean": "carrier"},
    "dest_often": {"count": "dest"},
    "dest_usual": {"rare_to_other": "dest", "embed": 2},
    "delay_bin": {"quantile_bins": "dep_delay", "bins": 16, "embed": 2},
    "delay_robust": {"robust_scale": "dep_delay"},
    "far": {"min_max": "distance"},
}
LAYERS = [{"dense": 64, "activation": "relu"}, {"dense": 32, "activation": "relu"}]
WHERE = "distance > 200 and carrier != 'HA'"
LOSS = "binary_cross_entropy"


@functools.cache
def flights(count: int) -> list[dict[str, Any]]:
    """The demo's first flights that have arrived."""
    columns = load_flights(2 * count)
    arrived = np.flatnonzero(~np.isnan(columns["late"]))[:count]
    names = (*FEATURES, "sched", "late")
    cells = (columns[name][arrived] for name in names)
    plain = (each.astype(int).tolist() if each.dtype.kind == "f" else each.tolist() for each in cells)
    return [dict(zip(names, row, strict=True)) for row in zip(*plain, strict=True)]


def decoded(form: str, transforms: dict[str, Any], where: str | None = None) -> Callable[[], int]:
    """Decodes all flights' records into one slot."""
    schema, rows = Schema.from_columns(COLUMNS, LOSS, transforms, where), flights(ROWS)
    if form == "packed":
        plain = Schema.from_columns(COLUMNS, LOSS, TRANSFORMS)  # texts, which transforms read
        records = [encode_rows(form, plain, rows[at : at + PACKED_ROWS]) for at in range(0, ROWS, PACKED_ROWS)]
    else:
        records = [record for row in rows for record in encode_records(form, schema, [row])]
    return decoder(form, schema, records, ROWS, ROWS)


@bench(
    "transforms",
    [
        Line("json, flights with 20 transforms", "json with", "json without", 0.6),
        Line("msgpack, flights with 20 transforms", "msgpack with", "msgpack without"),
        Line("packed, flights with 20 transforms", "packed with", "packed without"),
        Line("json, flights with a condition", "json where", "json without"),
    ],
    rates(), "rows/s", seconds=14.0,
)  # fmt: skip
def transforms(run: Run) -> Sides:
    """Flights decoded with 20 transforms, and with a condition, against the same without."""
    sides: dict[str, Any] = {"json where": decoded("json", {}, WHERE)}
    for form in ("json", "msgpack", "packed"):
        sides |= {f"{form} with": decoded(form, TRANSFORMS), f"{form} without": decoded(form, {})}
    return sides


def step(rows: int, transforms: dict[str, Any]) -> tuple[Callable[[], object], float]:
    """A step on so many flights, decoded as a job's."""
    schema = Schema.from_columns(COLUMNS, LOSS, transforms)
    slot = RowSlot(schema, rows)
    assert [count for count, _ in slot.batches(flights(rows))] == [rows]
    set_rows(slot.slot, rows)
    spec = {"input": schema.engine_inputs(), "layers": LAYERS, "loss": LOSS, "optimizer": {"name": "adam"}}
    return planned(spec, slot.layout, slot.slot, number=1), rows


@bench(
    "stateful",
    {
        (rows,): [Line(f"a step of {rows} flights, 6 transforms with state", "with", "without", bar)]
        for rows, bar in ((32, None), (256, 0.8), (1024, None))
    },
    best_times(time.process_time, repeat=20), "rows/s", seconds=9.0,
)  # fmt: skip
def stateful(run: Run, rows: int) -> Sides:
    """A training step with six transforms that have a state, against the same without; process time."""
    return {"with": step(rows, STATEFUL), "without": step(rows, {})}


BAR, KERNEL_BAR = 0.9, 4  # for each thread
THREADS = media.threads()
PICTURES, CLIPS, RATE = 1024, 256, 16_000
FORM = SoundForm(RATE, RATE, 64, 400, 160)
PHOTO = {"kind": "image", "size": [32, 32]}
CLIP = {"kind": "audio", "rate": RATE, "seconds": 1.0, "features": {"mel": 64, "window": 400, "step": 160}}
BOTH = rates(clock=time.perf_counter, cpu=time.process_time)


def lines_of(name: str, rival: str, bar: float = BAR, threads: int = THREADS) -> list[Line]:
    return [
        Line(f"{name}, by clock time", f"{name}:clock", f"{rival}:clock", round(bar * threads, 2)),
        Line(f"{name}, by CPU time", f"{name}:cpu", f"{rival}:cpu", bar),
    ]


def into_slots(column: dict[str, Any], records: list[bytes], count: int, slot_rows: int) -> Callable[[], int]:
    schema = Schema.from_columns({"content": column, "late": {"role": "label"}}, "binary_cross_entropy")
    return decoder("msgpack", schema, records, count, slot_rows)


@bench(
    "images", [*lines_of("a picture a record", "cv2.imdecode"), *lines_of("64 pictures a record", "cv2.imdecode")],
    BOTH, "pictures/s", needs=("cv2",), seconds=15.0,
)  # fmt: skip
def images(run: Run) -> Sides:
    """JPEGs of 32 x 32 into slots on all cores, against cv2.imdecode alone on one."""
    import cv2
    from pictures import labelled

    raws = [raw for raw, _ in labelled(PICTURES)]
    rows = [{"content": raw, "late": at % 2} for at, raw in enumerate(raws)]
    packed = [msgpack.packb(rows[at : at + 64]) for at in range(0, PICTURES, 64)]
    return {
        "a picture a record": into_slots(PHOTO, [msgpack.packb(row) for row in rows], PICTURES, 256),
        "64 pictures a record": into_slots(PHOTO, packed, PICTURES, 256),
        "cv2.imdecode": each_of(raws, lambda raw: cv2.imdecode(np.frombuffer(raw, np.uint8), cv2.IMREAD_COLOR)),
    }


def numpy_log_mel() -> Callable[[Any], object]:
    """The usual code for it: frames, a real transform, a product with the bands."""
    points, bands = 512, FORM.bands
    weights = np.zeros((points // 2 + 1, FORM.mel), np.float32)
    begin = 0
    for band, (first, end) in enumerate(zip(bands.first, bands.ends, strict=True)):
        weights[first : first + end - begin, band] = bands.weights[begin:end]
        begin = int(end)

    def log_mel(wave: Any) -> object:
        frames = np.lib.stride_tricks.sliding_window_view(wave, FORM.window)[:: FORM.step] * bands.taper
        power = np.abs(np.fft.rfft(frames, points)) ** 2
        return np.log(np.maximum(power.astype(np.float32) @ weights, sounds.FLOOR))

    return log_mel


@bench(
    "audio",
    {
        ("",): lines_of("log-mel alone, one thread", "NumPy", KERNEL_BAR, 1),   # with nothing else in memory
        ("FLAC",): lines_of("FLAC to log-mel", "soundfile, FLAC"),
        ("WAV",): lines_of("WAV to log-mel", "soundfile, WAV"),
    },
    BOTH, "clips/s", needs=("soundfile",), seconds=30.0,
)  # fmt: skip
def audio(run: Run, form: str) -> Sides:
    """A second of sound at 16 kHz: log-mel against NumPy, and FLAC and WAV into slots against soundfile alone on one
    core."""
    import soundfile
    from sounds import flac, tone, wav

    waves = [tone(RATE, 300 + 10 * seed, 0.05, seed, RATE) for seed in range(CLIPS if form else 32)]
    if not form:
        kernel = each_of(waves, lambda wave: sounds.features(wave, FORM))
        return {"log-mel alone, one thread": kernel, "NumPy": each_of(waves, numpy_log_mel())}
    raws = [(flac if form == "FLAC" else wav)(wave, RATE) for wave in waves]
    records = [msgpack.packb({"content": raw, "late": at % 2}) for at, raw in enumerate(raws)]
    return {
        f"{form} to log-mel": into_slots(CLIP, records, CLIPS, 64),
        f"soundfile, {form}": each_of(raws, lambda raw: soundfile.read(io.BytesIO(raw), dtype="float32")),
    }
